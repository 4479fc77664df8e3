import { createPostgresStore } from 'holdfast/postgres'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { describeServers } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'

describeServers('a schema that is missing', (server) => {
  const schemas = useSchemas(server)

  it('is told with the command that makes it', async () => {
    using place = createPlace()
    const schema = schemas.newSchema()
    const env = { HOLDFAST_STORE: schemas.url, HOLDFAST_SCHEMA: schema }
    for (const args of [['status'], ['dlq', 'list'], ['start', '--no-migrate']])
      expect(await place.json(args, { env })).toMatchObject({
        code: 1,
        error: {
          code: 'SCHEMA_MISSING',
          message: expect.stringContaining(`schema ${schema}`),
          hint: expect.stringContaining('run: holdfast migrate'),
        },
      })
    const opened = createPostgresStore({ connection: schemas.url, schema, migrate: false })
    await expect(opened).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
      hint: expect.stringContaining('holdfast migrate'),
    })
  })

  it('also where it is dropped under a program', async () => {
    const schema = schemas.newSchema()
    await using store = await schemas.open(schema)
    await schemas.user.query(`DROP SCHEMA ${schema} CASCADE`)
    await expect(store.breakers.list()).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      hint: expect.stringContaining('run: holdfast migrate'),
    })
  })
})

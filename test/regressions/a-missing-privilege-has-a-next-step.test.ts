import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { describeServers } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'

describeServers('a role that lacks a privilege', (server) => {
  const schemas = useSchemas(server)

  it('is told what to grant, and as which role', async () => {
    const role = `role_${randomBytes(6).toString('hex')}`
    await schemas.user.query(`CREATE ROLE ${role} LOGIN PASSWORD 'p'`)
    const schema = schemas.newSchema()
    const store = await schemas.open(schema)
    await store.close()
    const url = Object.assign(new URL(schemas.url), { username: role, password: 'p' }).href
    using place = createPlace()
    for (const args of [['status'], ['migrate'], ['dlq', 'list', 'balances']]) {
      const { code, stderr } = await place.call([...args, '--schema', schema], { env: { HOLDFAST_STORE: url } })
      expect({ args, code, stderr }).toEqual({
        args,
        code: 1,
        stderr: expect.stringMatching(/^STORE_REFUSED: .*permission denied.*42501.*\nNext: .*rolesSql/) as string,
      })
    }
  })
})

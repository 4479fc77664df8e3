import { randomBytes } from 'node:crypto'
import { createEngine, createLog } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { balances, bank, credited } from '../fixtures.ts'
import { describeServers } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

describeServers('a wrong role, password or database', (server) => {
  const schemas = useSchemas(server)
  const changed = (change: (url: URL) => void) => {
    const url = new URL(schemas.url)
    change(url)
    return url.href
  }
  /** A role of its own, whose password can be changed without anyone else noticing. */
  const createRole = async () => {
    const role = `role_${randomBytes(6).toString('hex')}`
    await schemas.user.query(`CREATE ROLE ${role} SUPERUSER LOGIN PASSWORD 'first'`)
    const rotate = async (password: string) => {
      await schemas.user.query(`ALTER ROLE ${role} PASSWORD '${password}'`)
      await schemas.user.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1', [role])
    }
    const url = changed((each) => Object.assign(each, { username: role, password: 'first' }))
    return { url, rotate }
  }

  it('is refused at once with its own code, by the library and by every command', async () => {
    using place = createPlace()
    const wrong = [
      changed((url) => void (url.password = 'geheim')),
      changed((url) => void (url.username = 'no_such_role')),
      changed((url) => void (url.pathname = '/no_such_database')),
    ]
    for (const connection of wrong) {
      const { host } = new URL(connection)
      await expect(createPostgresStore({ connection })).rejects.toMatchObject({
        code: 'STORE_MISCONFIGURED',
        message: expect.stringContaining(host),
        hint: expect.stringMatching(/role|password|database/),
      })
      for (const args of [['status'], ['start'], ['migrate']]) {
        const { code, stderr } = await place.call(args, { env: { HOLDFAST_STORE: connection } })
        expect({ args, code, stderr }).toMatchObject({
          code: 1,
          stderr: expect.stringMatching(/^STORE_MISCONFIGURED: .*\nNext: /),
        })
        expect(stderr).not.toContain('geheim')
      }
    }
  })

  it('ends the start of an engine', async () => {
    const { url, rotate } = await createRole()
    await using store = await createPostgresStore({ connection: url, schema: schemas.newSchema() })
    await rotate('second')
    // The connections that were there are lost first.
    const codeOf = () => store.breakers.list().catch(({ code }: { code: string }) => code)
    await expect.poll(codeOf).toBe('STORE_MISCONFIGURED')
    const engine = createEngine({ store, subscriptions: [balances], logger: silent })
    await expect(engine.start()).rejects.toMatchObject({ code: 'STORE_MISCONFIGURED' })
  })

  it('blocks an engine that runs, which continues when the password is right again', async () => {
    const { url, rotate } = await createRole()
    const schema = schemas.newSchema()
    await using other = await schemas.open(schema)
    await using store = await createPostgresStore({ connection: url, schema })
    await using engine = createEngine({ store, subscriptions: [balances], logger: silent })
    await engine.start()
    await createLog({ store: other, events: bank }).append('a', [credited(1)])
    await engine.drain()
    const codes = new Set<unknown>()
    engine.on('store.failed', ({ error }) => codes.add((error as { code?: string }).code))
    await rotate('second')
    await expect.poll(() => [...codes]).toContain('STORE_MISCONFIGURED')
    const { subscriptions } = await engine.status()
    expect(subscriptions[0]?.state.state).toBe('blocked')
    await createLog({ store: other, events: bank }).append('a', [credited(2)])
    await rotate('first')
    await engine.drain()
    expect(await engine.read(balances).get('a')).toMatchObject({ version: 2, data: { balance: 3 } })
    expect(await engine.letters({ subscription: 'balances' })).toEqual([])
  })
})

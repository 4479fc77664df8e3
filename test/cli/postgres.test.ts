import { Client } from 'pg'
import { describe, expect, it, vi } from 'vitest'
import { describeServers } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'
import { createPlace } from './place.ts'

vi.setConfig({ testTimeout: 90_000 })

const append = ['events', 'append', 'a', 'Credited', '--data', '{"amount":1}', '--reason', 'x']

describeServers('the command line', (server) => {
  const schemas = useSchemas(server)

  it('makes a schema only when it is told to, and finds who holds up the log', async () => {
    using place = createPlace()
    const schema = schemas.newSchema()
    const env = { DATABASE_URL: schemas.url, HOLDFAST_SCHEMA: schema }
    const json = (...args: string[]) => place.json(args, { env })
    for (const args of [['status'], ['verify'], append])
      expect(await json(...args)).toMatchObject({ code: 1, error: { code: 'SCHEMA_MISSING' } })
    expect(await json('doctor')).toMatchObject({
      code: 3,
      findings: [{ check: 'schema', level: 'problem', next: 'holdfast migrate' }],
    })
    expect(await json('migrate', '--dry-run')).toMatchObject({
      code: 0,
      migrations: expect.arrayContaining(['ground']),
    })
    expect(await json('doctor')).toMatchObject({ code: 3 })
    expect(await json('migrate')).toMatchObject({ code: 0 })
    expect(await json('migrate')).toMatchObject({ code: 0, migrations: [] })
    expect(await json(...append)).toMatchObject({ code: 0, version: 1 })
    expect(await json('subscriptions', 'lag', 'balances')).toMatchObject({
      subscriptions: [{ partitions: [{}, {}, {}, {}] }],
    })
    const { stdout } = await place.call(['doctor'], { env })
    expect(stdout).toContain('ok horizon')
    expect(stdout).toContain('ok clock')

    // A program that appended and forgot to commit.
    const slow = new Client({ connectionString: schemas.url, application_name: 'forgetful' })
    await slow.connect()
    try {
      await using store = await schemas.open(schema)
      const { createLog } = await import('holdfast')
      const log = createLog({ store })
      await slow.query('BEGIN')
      await log.append('slow', [{ type: 'Odd', data: {} }], { tx: slow })
      await log.append('quick', [{ type: 'Odd', data: {} }])
      const told = await place.call(['doctor'], { env })
      expect(told.code).toBe(3)
      expect(told.stdout).toMatch(/(warning|problem) horizon Readers wait after position \d+ .*pid \d+ \(forgetful/)
    } finally {
      await slow.end()
    }
  })
})

describe('a server', () => {
  it('that is not there is told without a password, and without a stack', async () => {
    using place = createPlace()
    const env = { HOLDFAST_STORE: 'postgres://nobody:geheim@127.0.0.1:1/nothing' }
    for (const args of [['status'], ['migrate'], ['start'], append, ['doctor']]) {
      const { code, stdout, stderr } = await place.call(args, { env })
      expect({ args, code }).toEqual({ args, code: args[0] === 'doctor' ? 3 : 1 })
      expect(stdout + stderr).toContain('STORE_UNAVAILABLE')
      expect(stdout + stderr).not.toMatch(/geheim| {4}at /)
    }
    const wrong = await place.call(['status', '--store', 'postgres://x@y/z', '--schema', 'Not a name'])
    expect(wrong).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/^NAME_INVALID: /) })
  })
})

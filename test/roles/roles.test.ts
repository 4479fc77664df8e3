import { randomBytes } from 'node:crypto'
import type { Store } from 'holdfast'
import { createPostgresStore, rolesSql } from 'holdfast/postgres'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  at,
  claimBy,
  claimed,
  commitOf,
  deedOf,
  hold as holdOf,
  letter,
  limits,
  newEvent,
  row,
  table,
} from '../../src/testing/contracts/fixtures.ts'
import { generationTable } from '../../src/rebuild/generation.ts'
import type { Lease } from '../../src/subscription/subscription-store.ts'
import { createDatabase, type Database, describeServers } from '../postgres/databases.ts'

const verbs = ['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE'] as const
type Verb = (typeof verbs)[number]

/** What may be done, in the order of the verbs: allowed, denied, or refused by the trigger that keeps the log or the audit. */
type Rights = `${string} ${string} ${string} ${string} ${string}`

const all: Rights = 'yes yes yes yes yes'
const none: Rights = 'no no no no no'
const reads: Rights = 'yes no no no no'
const inserts: Rights = 'yes yes no no no'
const updates: Rights = 'yes yes yes no no'
const deletes: Rights = 'yes yes yes yes no'

/** Of everything that is in the schema: what is not written down here fails the test. */
const expected: Record<string, { migrator: Rights; engine: Rights; reader: Rights; nobody: Rights }> = {
  holdfast_events: { migrator: 'yes yes log log log', engine: inserts, reader: reads, nobody: none },
  holdfast_subscriptions: { migrator: all, engine: inserts, reader: reads, nobody: none },
  holdfast_partitions: { migrator: all, engine: updates, reader: reads, nobody: none },
  holdfast_members: { migrator: all, engine: deletes, reader: reads, nobody: none },
  holdfast_lanes: { migrator: all, engine: deletes, reader: reads, nobody: none },
  holdfast_letters: { migrator: all, engine: deletes, reader: reads, nobody: none },
  holdfast_incidents: { migrator: all, engine: deletes, reader: reads, nobody: none },
  holdfast_revisions: { migrator: all, engine: deletes, reader: reads, nobody: none },
  holdfast_redrives: { migrator: all, engine: deletes, reader: reads, nobody: none },
  holdfast_redrive_lanes: { migrator: all, engine: deletes, reader: reads, nobody: none },
  holdfast_audit: { migrator: 'yes yes audit audit audit', engine: inserts, reader: reads, nobody: none },
  holdfast_trials: { migrator: all, engine: deletes, reader: reads, nobody: none },
  holdfast_inbox: { migrator: all, engine: deletes, reader: none, nobody: none },
  holdfast_breakers: { migrator: all, engine: deletes, reader: reads, nobody: none },
  holdfast_dead_letters: { migrator: reads, engine: reads, reader: reads, nobody: none },
  holdfast_migrations: { migrator: all, engine: reads, reader: reads, nobody: none },
  // Made before the roles were given their rights, and after it.
  balances: { migrator: all, engine: updates, reader: reads, nobody: none },
  later: { migrator: all, engine: updates, reader: reads, nobody: none },
}

const expectedCalls = {
  holdfast_append: { migrator: 'yes', engine: 'yes', reader: 'no', nobody: 'no' },
  holdfast_append_one: { migrator: 'yes', engine: 'yes', reader: 'no', nobody: 'no' },
  holdfast_expect: { migrator: 'yes', engine: 'yes', reader: 'no', nobody: 'no' },
  holdfast_audit_append_only: { migrator: 'yes', engine: 'no', reader: 'no', nobody: 'no' },
  holdfast_append_only: { migrator: 'yes', engine: 'no', reader: 'no', nobody: 'no' },
}

describeServers('the roles of a schema', (server) => {
  const schema = 'kept'
  const suffix = randomBytes(4).toString('hex')
  const roleOf = (role: string) => `${role}_${suffix}`
  const names = { schema, migrator: roleOf('migrator'), engine: roleOf('engine'), reader: roleOf('reader') }
  const login = { deployer: roleOf('deployer'), runner: roleOf('runner'), nobody: roleOf('nobody') }
  let database: Database
  let admin: Client

  beforeAll(async () => {
    database = await createDatabase(server)
    admin = new Client({ connectionString: database.url })
    await admin.connect()
    {
      // By whoever installs it, who need not be the migrator.
      await using store = await createPostgresStore({ connection: database.url, schema })
      await store.subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    }
    await admin.query(rolesSql(names))
    for (const name of Object.values(login)) await admin.query(`CREATE ROLE ${name} LOGIN PASSWORD '${suffix}'`)
    await admin.query(
      `GRANT ${names.migrator} TO ${login.deployer}; ALTER ROLE ${login.deployer} SET ROLE ${names.migrator}`,
    )
    await admin.query(`GRANT ${names.engine} TO ${login.runner}`)
    await using store = await createPostgresStore({ connection: urlOf(login.deployer), schema })
    await store.subscriptions.register({
      name: 'later',
      table: { name: 'later', columns: [] },
      start: 0,
      partitions: 1,
    })
    // Does no harm.
    await admin.query(rolesSql(names))
  })

  afterAll(async () => {
    const roles = [...Object.values(login), names.migrator, names.engine, names.reader]
    await admin.query(`DROP SCHEMA ${schema} CASCADE; DROP OWNED BY ${roles.join(', ')}; DROP ROLE ${roles.join(', ')}`)
    await admin.end()
    await database[Symbol.asyncDispose]()
  })

  const roles = { migrator: names.migrator, engine: names.engine, reader: names.reader, nobody: login.nobody }

  it('may do to every table what is written down, and nothing else', async () => {
    const found: Record<string, Record<string, string>> = {}
    for (const { name, column } of await tables()) {
      found[name] = {}
      for (const [role, as] of Object.entries(roles)) {
        const rights: string[] = []
        for (const verb of verbs) rights.push(await attempt(as, statementOf(verb, `${schema}.${name}`, column)))
        found[name][role] = rights.join(' ')
      }
    }
    expect(found).toEqual(expected)
  })

  it('may call what is written down, and nothing else', async () => {
    const found: Record<string, Record<string, string>> = {}
    for (const { name, given } of await functions()) {
      found[name] = {}
      for (const [role, as] of Object.entries(roles))
        found[name][role] = await attempt(as, `SELECT ${schema}.${name}(${given})`)
    }
    expect(found).toEqual(expectedCalls)
  })

  it('may make things only as the migrator', async () => {
    const made: Record<string, string[]> = {}
    for (const [role, as] of Object.entries(roles)) {
      made[role] = [
        await attempt(as, `CREATE TABLE ${schema}.another (n int)`),
        await attempt(as, `CREATE INDEX ON ${schema}.balances (version)`),
        await attempt(as, `ALTER TABLE ${schema}.holdfast_events DISABLE TRIGGER ALL`),
        await attempt(as, `DROP TRIGGER holdfast_events_append_only ON ${schema}.holdfast_events`),
        await attempt(as, `CREATE FUNCTION ${schema}.f() RETURNS int LANGUAGE sql AS 'SELECT 1'`),
      ]
    }
    const no = ['no', 'no', 'no', 'no', 'no']
    expect(made).toEqual({ migrator: no.map(() => 'yes'), engine: no, reader: no, nobody: no })
  })

  it('begins, switches and drops versions as the migrator, and builds them as the engine', async () => {
    const first = { name: 'turned', columns: [] }
    const second = generationTable({ name: 'turned', columns: [] }, 2)
    const begin = { subscription: 'turned', version: 2, kind: 'fold', table: second, deed: deedOf('begin') } as const
    const change = { subscription: 'turned', version: 2, at: 1, strays: 0, deed: deedOf('switch') }
    await using deployer = await createPostgresStore({ connection: urlOf(login.deployer), schema })
    await using runner = await createPostgresStore({ connection: urlOf(login.runner), schema, migrate: false })
    await deployer.subscriptions.register({ name: 'turned', table: first, start: 0, partitions: 1 })
    const refused = { code: 'STORE_REFUSED' }
    await expect(runner.rebuilds.begin(begin)).rejects.toMatchObject(refused)
    await deployer.rebuilds.begin(begin)
    expect(await runner.rebuilds.begin(begin)).toMatchObject({ outcome: 'begun', isNew: false })
    const build = { subscription: 'turned~2', partition: 0, owner: 'builder', leaseMs: 10_000, version: 2 }
    const lease = claimed(await runner.subscriptions.claim(build))
    const rows = [{ key: 'a', version: 1, position: 1, json: '{}', columns: [] }]
    const built = { ...commitOf(lease), to: at(1), table: second, rows }
    expect(await runner.subscriptions.commit(built)).toEqual({ outcome: 'committed' })
    await runner.rebuilds.halt('turned', 1)
    await expect(runner.rebuilds.switch(change)).rejects.toMatchObject(refused)
    await admin.query(`GRANT SELECT ON ${schema}.turned TO ${login.nobody}`)

    expect(await deployer.rebuilds.switch(change)).toMatchObject({ outcome: 'switched' })

    const claim = { subscription: 'turned', partition: 0, owner: 'runner', leaseMs: 10_000, version: 2 }
    const live = claimed(await runner.subscriptions.claim(claim))
    const more = [{ key: 'a', version: 2, position: 2, json: '{}', columns: [] }]
    const page = { ...commitOf(live), from: 1, to: at(2), table: first, rows: more }
    expect(await runner.subscriptions.commit(page)).toEqual({ outcome: 'committed' })
    // Whoever might read the one may read the other.
    const readable = await admin.query<{ may: boolean }>(
      `SELECT has_table_privilege($1, '${schema}.turned', 'SELECT') AS may`,
      [login.nobody],
    )
    expect(readable.rows).toEqual([{ may: true }])
    await expect(runner.rebuilds.drop('turned', 1, deedOf('drop'))).rejects.toMatchObject(refused)
    expect(await deployer.rebuilds.drop('turned', 1, deedOf('drop'))).toBe('dropped')
    // The tables that the others of these tests look at are as they were.
    await runner.subscriptions.release(live)
    await admin.query(`
      DELETE FROM ${schema}.holdfast_partitions WHERE subscription = 'turned';
      DELETE FROM ${schema}.holdfast_subscriptions WHERE name = 'turned';
      DROP TABLE ${schema}.turned`)
  })

  it('runs subscriptions with the rights of the engine alone', async () => {
    await using store = await createPostgresStore({ connection: urlOf(login.runner), schema, migrate: false })
    const { subscriptions, letters, log } = store
    await log.append('a', [newEvent(`${suffix}-1`)], 'new')
    await log.append('b', [newEvent(`${suffix}-2`), newEvent(`${suffix}-3`)], 'any')
    const { events } = await log.readAll(0, limits)
    expect(events.length).toBe(3)
    expect(await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })).toEqual({
      partitions: 1,
      version: 1,
    })
    await subscriptions.attend({ owner: 'one', subscriptions: ['s'], leaseMs: 10_000 })
    const lease = claimed(await subscriptions.claim(claimBy('one')))
    const held = { ...letter('b', 1, 'parked'), logged: true, event: events[1] as (typeof events)[0] }
    const hold = {
      lane: 'b',
      status: 'parked',
      since: 1,
      done: undefined,
      head: 1,
      headPosition: held.event.position,
    } as const
    const page = {
      ...commitOf(lease),
      to: at(2),
      rows: [row('a', 1)],
      held: [held],
      lanes: [{ lane: 'b', hold, done: 1 }],
      marks: [[5, 5]],
      tried: 9,
      trial: { position: 9, instance: 'p1' },
      inbox: [{ key: 'k', result: '1', until: 5 }],
    } as const
    expect(await subscriptions.commit(page)).toEqual({ outcome: 'committed' })
    const performed = subscriptions.perform(lease, async (tx) => {
      await tx.attempt(() => log.append('c', [newEvent(`${suffix}-4`)], 'new', { tx: tx.handle }))
      const change = { change: 'resolved', position: held.event.position, by: 'engine' } as const
      const free = { lane: 'b', hold: undefined, done: undefined }
      return {
        ...commitOf(lease),
        from: 2,
        to: at(3),
        table: undefined,
        letters: [change],
        lanes: [free],
        endedTrials: [9],
      }
    })
    expect(await performed).toEqual({ outcome: 'committed' })
    expect((await letters.list({ subscription: 's' })).map(({ status }) => status)).toEqual(['resolved'])
    expect((await store.rows.load(table, ['a'])).size).toBe(1)
    expect(await store.snapshot((moment) => moment.partitions('s'))).toHaveLength(1)
    expect((await store.inbox.find('s', ['k'], 1)).size).toBe(1)
    expect(await store.inbox.sweep(5, 10)).toBe(1)
    await subscriptions.acquit('s', 0, 'p1')
    const breaker = { name: 'mail', state: { state: 'closed' }, record: '{}' } as const
    expect(await store.breakers.save(breaker, 0)).toBe(true)
    expect(await store.breakers.save(breaker, 1)).toBe(true)
    expect(await store.breakers.list()).toHaveLength(1)
    expect(await subscriptions.renew(lease, 10_000)).toBe(true)
    await subscriptions.pause('s', { reason: 'x', at: 1 }, deedOf('pause'))
    await subscriptions.resume('s', deedOf('resume'))
    await handle(store, lease)
    await subscriptions.release(lease)
    await subscriptions.leave('one')
    expect(await log.gap()).toBeUndefined()
    // One that needs no table needs no other rights.
    await subscriptions.register({ name: 'bare', table: undefined, start: 0, partitions: 2 })
    const unmade = { name: 'unmade', table: { name: 'unmade', columns: [] }, start: 0, partitions: 1 }
    await expect(subscriptions.register(unmade)).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.stringMatching(/not allowed to create the subscription unmade.*role that can create tables/),
    })
  })

  /** What people ask for, with the rights of the engine too. */
  async function handle({ subscriptions, letters, redrives, audit }: Store, lease: Lease): Promise<void> {
    const deed = (act: string) => ({ by: 'ann', act, target: 's', reason: 'why', at: 9, details: {} })
    const own = letter('z', 1, 'parked')
    const held = { ...own, event: { ...own.event, position: 1_000 } }
    const name = { subscription: 's', position: held.event.position }
    const page = { ...commitOf(lease), from: 3, to: at(3) }
    await subscriptions.commit({ ...page, held: [held], lanes: [holdOf(held, 1)] })
    expect((await letters.revise(name, '{}', deed('revise'))).outcome).toBe('revised')
    expect((await letters.unrevise(name, deed('unrevise'))).outcome).toBe('revised')
    const request = { id: 'r', subscription: 's', act: 'redrive', filter: {}, by: 'ann', reason: 'why', at: 9 } as const
    const asked = { ...request, expected: undefined, rate: undefined, stages: [], maxFailures: undefined }
    expect((await redrives.ask(asked)).outcome).toBe('asked')
    expect(await redrives.due('s', 0, 9)).toHaveLength(1)
    await subscriptions.commit({ ...page, redriven: [{ redrive: 'r', lane: 'z', letters: 1, state: 'done' }] })
    await redrives.advance('s')
    expect(await redrives.due('s', 0, 9)).toEqual([])
    expect((await redrives.ask({ ...asked, id: 'q' })).outcome).toBe('asked')
    expect(await redrives.cancel('q', deed('cancel'))).toBe(true)
    expect(await letters.purge('s', 1_000, 9, deed('purge'))).toBe(1)
    expect(await letters.incidents({ subscription: 's', limit: 9 })).toEqual([])
    await audit.record(deed('look'))
    const acts = (await audit.list(0, 99)).map(({ act }) => act)
    // Of the test before this one, then of this one.
    const versions = ['begin', 'begin', 'switch', 'drop']
    const now = ['pause', 'resume', 'revise', 'unrevise', 'redrive', 'redrive', 'cancel', 'purge', 'look']
    expect(acts).toEqual([...versions, ...now])
    expect(await subscriptions.rehearse(async () => {})).toEqual([])
  }

  it('are refused before the schema is there, and where their names are none', async () => {
    await expect(admin.query(rolesSql({ ...names, schema: 'elsewhere' }))).rejects.toThrow(/does not exist/)
    for (const engine of ['public', 'PUBLIC', 'none', 'pg_monitor', 'a"b', "a'b", '', names.reader])
      expect(() => rolesSql({ ...names, engine })).toThrow(/NAME|identifier|role/)
  })

  function urlOf(role: string): string {
    const url = new URL(database.url)
    url.username = role
    url.password = suffix
    return url.href
  }

  /** Every table and view, with a column that can be given a value. */
  async function tables(): Promise<{ name: string; column: string }[]> {
    const { rows } = await admin.query(
      `SELECT c.relname AS name, min(a.attname) AS column FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
       WHERE c.relnamespace = $1::regnamespace AND c.relkind NOT IN ('i', 'I', 'S', 't', 'c') AND a.attnum > 0 AND a.attidentity = ''
       GROUP BY c.relname`,
      [schema],
    )
    return rows as { name: string; column: string }[]
  }

  async function functions(): Promise<{ name: string; given: string }[]> {
    const { rows } = await admin.query(
      `SELECT proname AS name, coalesce((
         SELECT string_agg('NULL::' || format_type(argument, NULL), ', ' ORDER BY n)
         FROM unnest(proargtypes) WITH ORDINALITY AS arguments (argument, n)), '') AS given
       FROM pg_proc WHERE pronamespace = $1::regnamespace`,
      [schema],
    )
    return rows as { name: string; given: string }[]
  }

  /** Really tried, as that role, and taken back. */
  async function attempt(role: string, statement: string): Promise<'yes' | 'no' | 'log' | 'audit'> {
    await admin.query(`BEGIN; SET LOCAL ROLE ${role}`)
    try {
      await admin.query(statement)
      return 'yes'
    } catch (error) {
      const { code, message } = error as { code: string; message: string }
      if (message === 'the log is append-only') return 'log'
      if (message === 'the audit is append-only') return 'audit'
      // insufficient_privilege; a view that joins can't be written by anybody (55000, 42809).
      if (['42501', '55000', '42809'].includes(code)) return 'no'
      // Only who may gets as far as that: not_null_violation, feature_not_supported, null_value_not_allowed.
      if (['23502', '0A000', '22004'].includes(code)) return 'yes'
      throw error
    } finally {
      await admin.query('ROLLBACK')
    }
  }
})

function statementOf(verb: Verb, name: string, column: string): string {
  switch (verb) {
    case 'SELECT':
      return `SELECT ${column} FROM ${name} LIMIT 0`
    case 'INSERT':
      return `INSERT INTO ${name} DEFAULT VALUES`
    case 'UPDATE':
      return `UPDATE ${name} SET ${column} = DEFAULT WHERE false`
    case 'DELETE':
      return `DELETE FROM ${name} WHERE false`
    case 'TRUNCATE':
      return `TRUNCATE ${name}`
    default:
      return verb satisfies never
  }
}

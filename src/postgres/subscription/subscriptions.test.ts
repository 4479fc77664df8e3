import { Client } from 'pg'
import { afterEach, expect, it } from 'vitest'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import type { SubscriptionStore } from '../../subscription/subscription-store.ts'
import { at as position, claimBy, claimed, commitOf, leaseMs, row, table } from '../../testing/contracts/fixtures.ts'
import { Database } from '../connection/database.ts'
import { loadDriver } from '../connection/driver.ts'
import { presenceLock } from '../connection/locks.ts'
import { postgresSubscriptions } from './subscriptions.ts'

describeServers('subscriptions of several processes', (server) => {
  const schemas = useSchemas(server)
  const cleanups: (() => Promise<unknown>)[] = []

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) await cleanup()
  })

  it('are made once when all of them start together', async () => {
    const schema = schemas.readySchema()
    const stores = await Promise.all([1, 2, 3].map(() => schemas.open(schema)))
    cleanups.push(...stores.map((store) => () => store.close()))
    const made = await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        at(stores, i).subscriptions.register({
          name: `s${i % 4}`,
          table: tableOf(i % 4),
          start: 0,
          partitions: undefined,
        }),
      ),
    )
    expect(made).toEqual(made.map(() => ({ partitions: 4, version: 1 })))
    const { rows } = await schemas.user.query(
      `SELECT subscription, count(*)::int AS n FROM ${schema}.holdfast_partitions GROUP BY 1 ORDER BY 1`,
    )
    expect(rows).toEqual(['s0', 's1', 's2', 's3'].map((subscription) => ({ subscription, n: 4 })))
  })

  it('refuse names that anything else in the schema has, and other cuts and kinds', async () => {
    const schema = schemas.readySchema()
    await using store = await schemas.open(schema)
    const { subscriptions } = store
    await schemas.user.query(`CREATE VIEW ${schema}.seen AS SELECT 1; CREATE TYPE ${schema}.mood AS ENUM ('a');
      CREATE SEQUENCE ${schema}.numbers`)
    for (const name of ['seen', 'mood', 'numbers', 'holdfast_events', 'holdfast_events_pkey']) {
      const spec = { name: `of-${name}`, table: { name, columns: [] }, start: 0, partitions: 1 }
      await expect(subscriptions.register(spec)).rejects.toMatchObject({ code: 'PROJECTION_TABLE_TAKEN' })
    }
    await subscriptions.register({ name: 'sql', table: undefined, start: 3, partitions: undefined })
    const changed = { name: 'sql', table, start: 0, partitions: undefined }
    await expect(subscriptions.register(changed)).rejects.toMatchObject({ code: 'PROJECTION_CHANGED' })
    expect(await subscriptions.load('sql', 3)).toMatchObject({ partition: 3, checkpoint: { start: 3 } })
    await subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const reordered = { ...table, columns: table.columns.toReversed() }
    await subscriptions.register({ name: 's', table: reordered, start: 0, partitions: undefined })
    const long = { name: 'x'.repeat(48), columns: [{ name: 'y'.repeat(48), type: 'text' }] } as const
    await subscriptions.register({ name: 'long', table: long, start: 0, partitions: 1 })
    await expect(subscriptions.claim({ ...claimBy('one'), subscription: 'none' })).rejects.toMatchObject({
      code: 'SUBSCRIPTION_UNKNOWN',
    })
  })

  it('take over at once from a process that is certainly dead, and not before', async () => {
    const schema = schemas.readySchema()
    const [one, two] = [await process(schema, -5), await process(schema, 2)]
    await one.subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const lease = claimed(await one.subscriptions.claim(claimBy('one')))
    expect(await two.subscriptions.claim(claimBy('two'))).toEqual({ outcome: 'owned', owner: 'one' })
    const isFree = async () => {
      const [view] = await two.subscriptions.attend({ owner: 'two', subscriptions: ['s'], leaseMs })
      return view?.partitions[0]?.isFree
    }
    expect(await isFree()).toBe(false)
    await one.die()
    expect(await isFree()).toBe(true)
    const taken = claimed(await two.subscriptions.claim(claimBy('two')))
    expect(taken.epoch).toBe(lease.epoch + 1)
    expect(await one.subscriptions.commit(commitOf(lease))).toMatchObject({ outcome: 'fenced', owner: 'two' })
    // In another database the same number is somebody else.
    const elsewhere = await connect(server.url)
    await elsewhere.query('SELECT pg_advisory_lock($1, $2)', [presenceLock, 2])
    await two.die()
    const three = await process(schema, 3)
    claimed(await three.subscriptions.claim(claimBy('three')))
  })

  it('wait for the lease of a process whose presence nobody knows', async () => {
    const schema = schemas.readySchema()
    const [one, two] = [await process(schema, undefined), await process(schema, undefined)]
    await one.subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const lease = claimed(await one.subscriptions.claim(claimBy('same')))
    // The name alone doesn't prove that it is the same process.
    expect((await two.subscriptions.claim(claimBy('same'))).outcome).toBe('owned')
    expect((await one.subscriptions.claim(claimBy('same'))).outcome).toBe('owned')
    // Whoever has a presence again writes it down with whatever it writes.
    one.presence = 7
    await one.hold(7)
    expect((await one.subscriptions.commit(commitOf(lease))).outcome).toBe('committed')
    await one.die()
    claimed(await two.subscriptions.claim(claimBy('two')))
  })

  it('write that they are there only when most of the time is gone', async () => {
    const schema = schemas.readySchema()
    const one = await process(schema, 11)
    await one.subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const attend = () => one.subscriptions.attend({ owner: 'one', subscriptions: ['s', 'none'], leaseMs: 9_000 })
    const writes = async () => (await schemas.user.query(`SELECT xmin::text FROM ${schema}.holdfast_members`)).rows
    expect((await attend()).map(({ name }) => name)).toEqual(['s'])
    const first = await writes()
    await attend()
    expect(await writes()).toEqual(first)
    await elapse(schema, 2_000)
    const second = await writes()
    await attend()
    expect(await writes()).toEqual(second)
    await elapse(schema, 1_500)
    const third = await writes()
    await attend()
    expect(await writes()).not.toEqual(third)
  })

  it('sweep out those who are dead, and count a process once whatever number it had', async () => {
    const schema = schemas.readySchema()
    const [one, two, namesake] = [
      await process(schema, 21),
      await process(schema, undefined),
      await process(schema, 23),
    ]
    await one.subscriptions.register({ name: 's', table, start: 0, partitions: 3 })
    const attend = async (who: Awaited<ReturnType<typeof process>>, owner: string) => {
      const [view] = await who.subscriptions.attend({ owner, subscriptions: ['s'], leaseMs })
      return view?.members
    }
    const stored = async () => {
      const sql = `SELECT owner, presence FROM ${schema}.holdfast_members ORDER BY owner, presence`
      return (await schemas.user.query(sql)).rows
    }
    await attend(one, 'one')
    await attend(two, 'two')
    await attend(namesake, 'one')
    claimed(await one.subscriptions.claim({ ...claimBy('one'), partition: 0 }))
    claimed(await two.subscriptions.claim({ ...claimBy('two'), partition: 1 }))
    const others = [
      { owner: 'one', isSelf: false, partitions: 1 },
      { owner: 'one', isSelf: true, partitions: 0 },
      { owner: 'two', isSelf: false, partitions: 1 },
    ]
    expect(await attend(namesake, 'one')).toEqual(others)
    // Its session comes up: what it wrote without a number is its own.
    two.presence = 22
    await two.hold(22)
    expect(await attend(two, 'two')).toEqual([
      { owner: 'one', isSelf: false, partitions: 1 },
      { owner: 'one', isSelf: false, partitions: 0 },
      { owner: 'two', isSelf: true, partitions: 1 },
    ])
    expect(await stored()).toEqual([
      { owner: 'one', presence: 21 },
      { owner: 'one', presence: 23 },
      { owner: 'two', presence: 22 },
    ])
    await one.die()
    expect(await attend(two, 'two')).toEqual([
      { owner: 'one', isSelf: false, partitions: 0 },
      { owner: 'two', isSelf: true, partitions: 1 },
    ])
    expect((await stored()).length).toBe(3)
    await elapse(schema, leaseMs / 2)
    await attend(two, 'two')
    expect(await stored()).toEqual([
      { owner: 'one', presence: 23 },
      { owner: 'two', presence: 22 },
    ])
    await namesake.subscriptions.leave('one')
    expect(await attend(two, 'two')).toEqual([{ owner: 'two', isSelf: true, partitions: 1 }])
  })

  it('give each partition to one of many who ask at the same moment', async () => {
    const schema = schemas.readySchema()
    const processes = await Promise.all([31, 32, 33, 34].map((number) => process(schema, number)))
    await processes[0]?.subscriptions.register({ name: 's', table, start: 0, partitions: 2 })
    const claims = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        at(processes, i).subscriptions.claim({ ...claimBy(`owner-${i}`), partition: i % 2 }),
      ),
    )
    expect(claims.filter((claim) => claim.outcome === 'claimed')).toHaveLength(2)
    expect(claims.every((claim) => claim.outcome === 'claimed' || claim.outcome === 'owned')).toBe(true)
  })

  it('take over from one that died while it committed, with everything that it left', async () => {
    const schema = schemas.readySchema()
    const [one, two] = [await process(schema, 41), await process(schema, 42)]
    await one.subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const lease = claimed(await one.subscriptions.claim(claimBy('one')))
    await one.subscriptions.commit({ ...commitOf(lease), trial: { position: 5, instance: 'p1' } })
    // Somebody holds a row of its last commit, and so the commit, and so who claims.
    await schemas.user.query('BEGIN')
    await schemas.user.query(`INSERT INTO ${schema}.balances (key, version, position, data) VALUES ('b', 0, 0, '{}')`)
    const commit = one.subscriptions.commit({
      ...commitOf(lease),
      to: position(5),
      rows: [row('b', 1)],
      marks: [[8, 8]],
      tried: 12,
      endedTrials: [5],
      trial: { position: 7, instance: 'p1' },
    })
    await untilWaiting(schema, 1)
    await one.die()
    const claim = two.subscriptions.claim(claimBy('two'))
    await untilWaiting(schema, 2)
    await schemas.user.query('ROLLBACK')
    expect(await commit).toEqual({ outcome: 'committed' })
    expect(await claim).toMatchObject({
      outcome: 'claimed',
      isInherited: true,
      state: { checkpoint: { position: 5 }, marks: [[8, 8]], tried: 12, trials: [{ position: 7, instance: 'p1' }] },
    })
  })

  it('take over nothing from one that gave it back while they waited', async () => {
    const schema = schemas.readySchema()
    const [one, two] = [await process(schema, 51), await process(schema, 52)]
    await one.subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    claimed(await one.subscriptions.claim(claimBy('one')))
    await elapse(schema, leaseMs)
    await schemas.user.query('BEGIN')
    await schemas.user.query(`UPDATE ${schema}.holdfast_partitions SET owner = NULL, presence = NULL`)
    const claim = two.subscriptions.claim(claimBy('two'))
    await untilWaiting(schema, 1)
    await schemas.user.query('COMMIT')
    expect(await claim).toMatchObject({ outcome: 'claimed', lease: { owner: 'two', epoch: 2 }, isInherited: false })
  })

  it('fence what their last owner commits behind one who waited longer for the partition', async () => {
    const schema = schemas.readySchema()
    const [one, two] = [await process(schema, 61), await process(schema, 62)]
    await one.subscriptions.register({ name: 's', table, start: 0, partitions: 1 })
    const lease = claimed(await one.subscriptions.claim(claimBy('one')))
    await elapse(schema, leaseMs)
    await schemas.user.query('BEGIN')
    await schemas.user.query(`SELECT FROM ${schema}.holdfast_partitions FOR UPDATE`)
    const claim = two.subscriptions.claim(claimBy('two'))
    await untilWaiting(schema, 1)
    const commit = one.subscriptions.commit({ ...commitOf(lease), to: position(5) })
    await untilWaiting(schema, 2)
    await schemas.user.query('ROLLBACK')
    expect(await claim).toMatchObject({ outcome: 'claimed', state: { checkpoint: { position: 0 } } })
    expect(await commit).toMatchObject({ outcome: 'fenced', owner: 'two' })
    expect(await two.subscriptions.load('s', 0)).toMatchObject({ checkpoint: { position: 0 } })
  })

  interface Process {
    readonly subscriptions: SubscriptionStore
    presence: number | undefined
    hold(number: number): Promise<void>
    die(): Promise<void>
  }

  /** A process with the presence it is given. */
  async function process(schema: string, presence: number | undefined): Promise<Process> {
    await (await schemas.open(schema)).close()
    const db = new Database({
      driver: await loadDriver(),
      connection: { connectionString: schemas.url },
      schema,
      connections: 3,
    })
    cleanups.push(() => db.close())
    const session = await connect(schemas.url)
    const listener = {
      presence,
      ready: async () => undefined,
      notify: () => undefined,
      onRelease: () => () => undefined,
    }
    const hold = async (number: number) => {
      await session.query('SELECT pg_advisory_lock($1, $2)', [presenceLock, number])
    }
    if (presence !== undefined) await hold(presence)
    return {
      subscriptions: postgresSubscriptions(db, listener),
      get presence() {
        return listener.presence
      },
      set presence(number) {
        listener.presence = number
      },
      hold,
      die: async () => {
        await session.end()
        await expect
          .poll(
            async () =>
              (await schemas.user.query(`SELECT FROM pg_stat_activity WHERE pid = $1`, [pidOf(session)])).rowCount,
          )
          .toBe(0)
      },
    }
  }

  async function connect(url: string): Promise<Client> {
    const client = new Client({ connectionString: url })
    await client.connect()
    cleanups.push(() => client.end())
    return client
  }

  /** On a connection of its own: inside a transaction the first look is the last. */
  async function untilWaiting(schema: string, count: number): Promise<void> {
    const client = await connect(schemas.url)
    const sql = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE '%${schema}%'`
    await expect.poll(async () => (await client.query(sql)).rowCount).toBe(count)
  }

  async function elapse(schema: string, ms: number): Promise<void> {
    for (const [name, column] of [
      ['partitions', 'lease_until'],
      ['members', 'until'],
    ])
      await schemas.user.query(`UPDATE ${schema}.holdfast_${name} SET ${column} = ${column} - ${ms} * interval '1 ms'`)
  }
})

function at<Item>(items: readonly Item[], i: number): Item {
  return items[i % items.length] as Item
}

function tableOf(i: number) {
  return { name: `t${i}`, columns: table.columns }
}

function pidOf(client: Client): number {
  return (client as unknown as { processID: number }).processID
}

import { setTimeout } from 'node:timers/promises'
import { createLog, defineProjection, HoldfastError, read, type RebuildProgress } from 'holdfast'
import { expect, it } from 'vitest'
import { sqlProjection } from '../../src/projection/sql-projection.ts'
import { bank } from '../fixtures.ts'
import { credit, engineOf, first, second, silent, liveWith } from './bank.ts'
import { describeEveryStore } from './stores.ts'
import { diffRebuild, dropRebuild, operatorOf, rebuild, switchRebuild } from '../acts.ts'

describeEveryStore('a projection is rebuilt beside the live one', (open) => {
  it('is over as switched where it was the live one in between, and its table was gone for that time', async () => {
    await using place = await open()
    const { store } = place
    await using old = await liveWith(store, 20)
    expect((await old.status()).subscriptions).toHaveLength(1)
    let asked = 0
    const commit: typeof store.subscriptions.commit = async (one) => {
      if (one.lease.subscription === 'balances~2' && asked++ === 0)
        throw new HoldfastError('SUBSCRIPTION_UNKNOWN', 'There is no table balances__v2.')
      return store.subscriptions.commit(one)
    }
    const gone = { ...store, subscriptions: { ...store.subscriptions, commit } }
    expect((await rebuild(second, { store: gone, logger: silent })).end).toBe('switched')
    expect(asked).toBeGreaterThan(0)
    expect((await rebuild(second, { store: gone, logger: silent })).end).toBe('level')
  })

  it('waits with another version than the live one, and takes over when it was switched to', async () => {
    await using place = await open()
    const { store } = place
    await using old = engineOf(store, [first])
    await using young = engineOf(store, [second])
    await old.start()
    await credit(store, 100)
    await old.drain()
    await young.start()
    await expect.poll(async () => stateOf(young)).toMatchObject({ state: 'blocked', by: 'version' })

    const { end } = await rebuild(second, { store, logger: silent })
    const switched = await switchRebuild(second, {
      store,
      logger: silent,
      wait: '20s',
      by: 'ada',
      reason: 'owing is allowed',
    })

    expect(end).toBe('level')
    expect(switched).toMatchObject({ subscription: 'balances', from: 1, to: 2 })
    await expect.poll(async () => stateOf(old)).toMatchObject({ state: 'blocked', by: 'version' })
    await credit(store, 50)
    await young.drain()
    expect((await read(store, second).get('account-0'))?.data).toEqual({ balance: 15, moves: 15 })
    expect(await young.verify('balances')).toMatchObject({ ok: true, events: 150, rows: 10 })
    expect((await store.audit.list(0, 10)).map(({ act, by }) => [act, by])).toEqual([
      ['projection.rebuild', 'test'],
      ['projection.switch', 'ada'],
    ])
  })

  it('switches while events keep coming: nothing is lost, and readers never see a mixture', async () => {
    await using place = await open()
    const { store, user } = place
    await using old = engineOf(store, [first])
    await using young = engineOf(store, [second])
    await old.start()
    await credit(store, 500)
    await young.start()
    const stop = new AbortController()
    const traffic = (async () => {
      for (let i = 0; !stop.signal.aborted; i++) {
        await credit(store, 20, 10, i * 20)
        await setTimeout(2)
      }
    })()
    const shapes = new Set<string>()
    const reading = (async () => {
      while (!stop.signal.aborted) {
        const rows = await user('SELECT data FROM $schema.balances')
        const kinds = new Set(rows.map(({ data }) => Object.keys(dataOf(data)).join()))
        expect(kinds.size).toBeLessThanOrEqual(1)
        for (const kind of kinds) shapes.add(kind)
        await setTimeout(2)
      }
    })()
    try {
      await rebuild(second, { store, logger: silent, load: 1 })
      await switchRebuild(second, { store, logger: silent, wait: '30s' })
      await credit(store, 100)
      await expect.poll(() => shapes.size).toBe(2)
    } finally {
      stop.abort()
      await Promise.all([traffic, reading])
    }

    await young.drain()
    expect(shapes).toEqual(new Set(['balance', 'balance,moves']))
    const head = await store.log.head()
    expect(await young.verify('balances')).toMatchObject({ ok: true, events: head, rows: 10 })
  })

  it('tells what is different before the switch, by its data', async () => {
    await using place = await open()
    const { store } = place
    const log = createLog({ store, events: bank })
    await log.append('rich', [{ type: 'Credited', data: { amount: 5 } }])
    await log.append('poor', [{ type: 'Debited', data: { amount: 5 } }])
    const same = defineProjection('balances', { ...definitionOf(first), version: 3 })
    await using old = engineOf(store, [first])
    await old.start()
    await old.drain()
    await rebuild(same, { store, logger: silent })
    await rebuild(second, { store, logger: silent })

    const none = await diffRebuild(same, { store })
    const some = await diffRebuild(second, { store })

    expect(none).toMatchObject({ same: 1, different: 0, onlyLive: 0, onlyRebuilt: 0, differences: [] })
    expect(some).toMatchObject({ same: 0, different: 1, onlyLive: 0, onlyRebuilt: 1 })
    expect(some.differences.map(({ key }) => key)).toEqual(['poor', 'rich'])
    expect(some.differences[0]?.live).toBeUndefined()
    await expect(diffRebuild(second, { store, version: 9 })).rejects.toMatchObject({ code: 'REBUILD_UNKNOWN' })
  })

  it('goes on where it was stopped, shared by several, and says how far it is', async () => {
    await using place = await open()
    const { store } = place
    await using old = engineOf(store, [first])
    await old.start()
    await credit(store, 2_000)
    await old.drain()
    const stop = new AbortController()
    const seen: RebuildProgress[] = []
    const page = { events: 50 }
    const onProgress = (progress: RebuildProgress) => {
      seen.push(progress)
      if (progress.events > 0) stop.abort()
    }
    const stopped = await rebuild(second, { store, logger: silent, rate: 1_000, page, signal: stop.signal, onProgress })
    const [, begun] = await store.rebuilds.list('balances')
    const progress = begun?.partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.applied, 0)

    const ends = await Promise.all([
      rebuild(second, { store, logger: silent, page, name: 'one' }),
      rebuild(second, { store, logger: silent, page, name: 'two' }),
    ])

    expect(stopped.end).toBe('stopped')
    expect(progress).toBeGreaterThan(0)
    expect(progress).toBeLessThan(2_000)
    expect(seen.at(-1)).toMatchObject({ subscription: 'balances', version: 2, isLevel: false })
    expect(seen.at(-1)?.total).toBeGreaterThan(1_000)
    expect(ends.map(({ end }) => end)).toEqual(['level', 'level'])
    await switchRebuild(second, { store, logger: silent, wait: '20s' })
    await using young = engineOf(store, [second])
    await young.start()
    await young.drain()
    expect(await young.verify('balances')).toMatchObject({ ok: true, counts: { applied: 2_000, duplicate: 0 } })
  })

  it('refuses to switch to what is behind, what is live and what is not there, and says so', async () => {
    await using place = await open()
    const { store } = place
    await using old = await liveWith(store, 20)
    await expect(switchRebuild(second, { store })).rejects.toMatchObject({ code: 'REBUILD_UNKNOWN' })
    await expect(rebuild(first, { store })).rejects.toMatchObject({ code: 'REBUILD_LIVE' })
    await rebuild(second, { store, logger: silent })
    await credit(store, 20)
    await old.drain()
    await expect(switchRebuild(second, { store })).rejects.toMatchObject({ code: 'REBUILD_BEHIND' })
    await expect(dropRebuild('balances', { store, version: 1 })).rejects.toMatchObject({ code: 'REBUILD_LIVE' })
    await dropRebuild('balances', { store, version: 2, by: 'ada', reason: 'not wanted' })
    await expect(dropRebuild('balances', { store, version: 2 })).rejects.toMatchObject({ code: 'REBUILD_UNKNOWN' })
    expect(await old.verify('balances')).toMatchObject({ ok: true, events: 40 })
  })

  it('leads back to what was live before, after that has caught up', async () => {
    await using place = await open()
    const { store } = place
    await using old = engineOf(store, [first])
    await using young = engineOf(store, [second])
    await old.start()
    await young.start()
    await credit(store, 50)
    await old.drain()
    await rebuild(second, { store, logger: silent })
    await switchRebuild(second, { store, logger: silent, wait: '20s' })
    await credit(store, 50)
    await young.drain()

    await expect(switchRebuild(first, { store })).rejects.toMatchObject({ code: 'REBUILD_BEHIND' })
    await switchRebuild(first, { store, logger: silent, wait: '20s' })

    await credit(store, 10)
    await expect.poll(async () => (await old.verify('balances')).events).toBe(110)
    expect(await old.verify('balances')).toMatchObject({ ok: true, rows: 10 })
    expect(await stateOf(young)).toMatchObject({ state: 'blocked', by: 'version' })
  })

  it('takes what people decided along: discarded is discarded, revised is revised', async () => {
    await using place = await open()
    const { store } = place
    const log = createLog({ store, events: bank })
    for (const key of ['thrown-away', 'mended', 'fixed-by-code']) {
      await log.append(key, [{ type: 'Debited', data: { amount: 5 } }])
      await log.append(key, [{ type: 'Credited', data: { amount: 7 } }])
    }
    const old = engineOf(store, [first])
    await old.start()
    await old.drain()
    await old.stop()
    await decide(store)

    await rebuild(second, { store, logger: silent })

    await switchRebuild(second, { store, logger: silent, wait: '20s' })
    await using young = engineOf(store, [second])
    await young.start()
    await young.drain()
    const rows = await Promise.all(
      ['thrown-away', 'mended', 'fixed-by-code'].map((key) => read(store, second).get(key)),
    )
    expect(rows.map((row) => row?.data)).toEqual([
      { balance: 7, moves: 1 },
      { balance: 6, moves: 2 },
      { balance: 2, moves: 2 },
    ])
    const letters = await store.letters.list({ subscription: 'balances' })
    expect(letters.map(({ lane, status, endedBy }) => [lane, status, endedBy])).toEqual([
      ['thrown-away', 'discarded', 'ada'],
      ['mended', 'resolved', 'engine'],
    ])
    expect(await young.verify('balances')).toMatchObject({
      ok: true,
      counts: { applied: 5, discarded: 1, held: 0, filtered: 0, duplicate: 0 },
    })
  })

  it('does not switch over a decision that the rebuild has not seen, unless told to', async () => {
    await using place = await open()
    const { store } = place
    const log = createLog({ store, events: bank })
    for (const key of ['thrown-away', 'mended']) await log.append(key, [{ type: 'Debited', data: { amount: 5 } }])
    const old = engineOf(store, [first])
    await old.start()
    await old.drain()
    await old.stop()
    await rebuild(second, { store, logger: silent })
    await decide(store)

    await expect(switchRebuild(second, { store })).rejects.toMatchObject({ code: 'REBUILD_STRAYS' })

    await switchRebuild(second, { store, evenStrays: true })
  })

  it('holds what the new code can not do, behind it what follows, and lets the rest go on', async () => {
    await using place = await open()
    const { store } = place
    const log = createLog({ store, events: bank })
    await using old = engineOf(store, [second])
    await old.start()
    await log.append('poor', [{ type: 'Debited', data: { amount: 5 } }])
    await log.append('poor', [{ type: 'Credited', data: { amount: 5 } }])
    await credit(store, 20)
    await old.drain()
    const stricter = defineProjection('balances', { ...definitionOf(first), version: 3 })

    const { progress } = await rebuild(stricter, { store, logger: silent })
    const switched = await switchRebuild(stricter, { store, logger: silent, wait: '20s' })

    expect(progress).toMatchObject({ held: 2 })
    expect(switched).toMatchObject({ held: 2, from: 2, to: 3 })
    await using strict = engineOf(store, [stricter])
    await strict.start()
    await log.append('poor', [{ type: 'Credited', data: { amount: 5 } }])
    await strict.drain()
    const letters = await store.letters.list({ subscription: 'balances' })
    expect(letters.map(({ lane, status }) => [lane, status])).toEqual([
      ['poor', 'parked'],
      ['poor', 'queued'],
      ['poor', 'queued'],
    ])
    expect(await strict.verify('balances')).toMatchObject({ ok: true, counts: { applied: 20, held: 3 } })
  })

  it('rebuilds SQL of a user into tables of the user, each event once', async () => {
    await using place = await open()
    const { store, user } = place
    const address = 'schema' in place.address ? `${place.address.schema}.` : ''
    await user('CREATE TABLE $schema.notes_a (n integer)')
    await user('CREATE TABLE $schema.notes_b (n integer)')
    const notes = (version: number, table: string) =>
      sqlProjection(store.dialect, 'notes', {
        version,
        events: bank,
        on: {
          Credited: async ({ data }, tx: SqlHandle) => {
            const sql = `INSERT INTO ${address}${table} (n) VALUES (${data.amount})`
            if (tx.exec) tx.exec(sql)
            else await tx.query?.(sql)
          },
        },
      })
    await using old = engineOf(store, [notes(1, 'notes_a')])
    await using young = engineOf(store, [notes(2, 'notes_b')])
    await old.start()
    await young.start()
    await credit(store, 60)
    await old.drain()

    await rebuild(notes(2, 'notes_b'), { store, logger: silent })
    await switchRebuild(notes(2, 'notes_b'), { store, logger: silent, wait: '20s' })

    await credit(store, 40)
    await young.drain()
    const [a] = await user('SELECT count(*) AS n FROM $schema.notes_a')
    const [b] = await user('SELECT count(*) AS n FROM $schema.notes_b')
    expect([Number(a?.['n']), Number(b?.['n'])]).toEqual([60, 100])
    expect(await young.verify('notes')).toMatchObject({ ok: true, counts: { applied: 100 } })
  })

  it('says what a reset costs, and ends a rebuild with it', async () => {
    await using place = await open()
    const { store } = place
    await using old = await liveWith(store, 30)
    await rebuild(second, { store, logger: silent })

    const { before } = await operatorOf(store, [first]).reset('balances', 'a test')

    expect(before.applied).toBe(30)
    expect((await store.rebuilds.list('balances')).map(({ version }) => version)).toEqual([1])
    await expect.poll(() => old.verify('balances')).toMatchObject({ ok: true, events: 30 })
    await expect(operatorOf(store, [second]).reset('balances', 'a test')).rejects.toMatchObject({
      code: 'PROJECTION_VERSION',
    })
  })

  it('ends a rebuild elsewhere when its version is dropped or switched to', async () => {
    await using place = await open()
    const { store } = place
    await using old = engineOf(store, [first])
    await old.start()
    await credit(store, 30)
    await old.drain()
    const following = rebuild(second, { store, logger: silent, follow: true })
    await expect.poll(async () => (await store.rebuilds.list('balances'))[1]?.partitions.length).toBeGreaterThan(0)
    await dropRebuild('balances', { store, version: 2 })
    expect((await following).end).toBe('dropped')

    const again = rebuild(second, { store, logger: silent, follow: true })
    await expect.poll(async () => (await store.rebuilds.list('balances'))[1]?.partitions.length).toBeGreaterThan(0)
    await switchRebuild(second, { store, logger: silent, wait: '20s' })
    expect((await again).end).toBe('switched')
  })

  it('lets views of a user read the one that is live', async () => {
    await using place = await open()
    const { store, user } = place
    await using old = engineOf(store, [first])
    await old.start()
    await credit(store, 30)
    await old.drain()
    await user('CREATE VIEW $schema.accounts AS SELECT key, version, data FROM $schema.balances')
    await rebuild(second, { store, logger: silent })

    await switchRebuild(second, { store, logger: silent, wait: '20s' })

    const rows = await user('SELECT data FROM $schema.accounts')
    expect(rows.length).toBe(10)
    expect(dataOf(rows[0]?.['data'])).toEqual({ balance: 3, moves: 3 })
  })

  /** Somebody discards the first letter of one lane and revises another, as an engine would write it when they ask for it. */
  async function decide(store: Awaited<ReturnType<typeof open>>['store']): Promise<void> {
    const { subscriptions } = store
    for (const { partition } of await subscriptions.partitions('balances')) {
      const claim = { subscription: 'balances', partition, owner: 'hand', leaseMs: 10_000 }
      const claimed = await subscriptions.claim(claim)
      if (claimed.outcome !== 'claimed') throw new Error(`partition ${partition} is not free`)
      const { lease, state } = claimed
      const { position, eventId, eventType, eventTime } = state.checkpoint
      for (const lane of await store.letters.heldLanes('balances', partition)) {
        if (lane.lane === 'mended') {
          const deed = { by: 'ada', act: 'edit', target: 'mended', reason: 'typo', at: 1, details: {} }
          await store.letters.revise({ subscription: 'balances', position: lane.headPosition }, '{"amount":1}', deed)
        }
        if (lane.lane !== 'thrown-away') continue
        const ending = { by: 'ada', reason: 'twice' }
        const outcome = await subscriptions.commit({
          lease,
          leaseMs: 10_000,
          from: position,
          commits: undefined,
          to: { position, eventId, eventType, eventTime },
          at: 1,
          counts: { applied: 0, duplicate: 0, filtered: 0, held: -1, discarded: 1 },
          table: undefined,
          rows: [],
          lanes: [],
          held: [],
          letters: [{ change: 'discarded', position: lane.headPosition, ending }],
        })
        expect(outcome).toEqual({ outcome: 'committed' })
      }
      await subscriptions.release(lease)
    }
  }
})

/** Of either store. */
interface SqlHandle {
  readonly exec?: (sql: string) => void
  readonly query?: (sql: string) => Promise<unknown>
}

async function stateOf(engine: ReturnType<typeof engineOf>) {
  return (await engine.status()).subscriptions[0]?.state
}

function definitionOf({ initial }: typeof first) {
  return {
    events: bank,
    initial: initial as () => { balance: number },
    on: {
      Credited: (row: { balance: number }, { data }: { data: { amount: number } }) => ({
        balance: row.balance + data.amount,
      }),
      Debited: (row: { balance: number }, { data }: { data: { amount: number } }) => {
        if (data.amount > row.balance) throw new RangeError('too little')
        return { balance: row.balance - data.amount }
      },
    },
    columns: { balance: 'integer' },
  } as const
}

/** PostgreSQL gives it parsed, SQLite as text. */
function dataOf(data: unknown): object {
  return (typeof data === 'string' ? JSON.parse(data) : data) as object
}

import { setTimeout } from 'node:timers/promises'
import {
  copyStore,
  createEngine,
  createLog,
  defineProjection,
  defineSubscription,
  type Engine,
  type EngineOptions,
  type Store,
} from 'holdfast'
import { createPostgresStore, defineSqlProjection } from 'holdfast/postgres'
import { Client, Query } from 'pg'
import { describe, expect, it, vi } from 'vitest'
import { slotOf } from '../../src/source/share.ts'
import { createScriptedSource } from '../../src/testing/source.ts'
import { createProxy } from '../chaos/proxy.ts'
import { balances, bank, countsOf, credited, debited, heldOf } from '../fixtures.ts'
import { cloneDatabase, servers } from '../postgres/databases.ts'
import { operatorOf } from '../acts.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const patience = { timeout: 12_000, interval: 30 }

async function createWorld() {
  const server = servers[0]
  if (!server) throw new Error('no server')
  const database = await cloneDatabase(server)
  const { url } = database
  const ends: (() => Promise<unknown>)[] = []
  const open = async (options: object = {}): Promise<Store> => {
    const store = await createPostgresStore({ connection: url, ...options })
    ends.unshift(() => Promise.race([store.close(), setTimeout(3_000)]))
    return store
  }
  const client = async () => {
    const made = new Client(url)
    made.on('error', () => undefined)
    await made.connect()
    ends.unshift(() => made.end())
    return made
  }
  return {
    url,
    open,
    client,
    engine: (store: Store, subscriptions: EngineOptions['subscriptions'], options: Partial<EngineOptions> = {}) => {
      const engine = createEngine({ store, subscriptions, logger: silent, ...options })
      ends.unshift(() => engine.stop({ timeout: '2s' }))
      return engine
    },
    [Symbol.asyncDispose]: async () => {
      for (const end of ends) await end()
      await database[Symbol.asyncDispose]()
    },
  }
}

const stateOf = async (engine: Engine) => (await engine.status()).subscriptions[0]?.state
const keyIn = (partition: number, of: number, nth = 0) => {
  for (let i = 0; ; i++) if (slotOf(`k${i}`) % of === partition && nth-- === 0) return `k${i}`
}

describe.skipIf(!servers[0])('on PostgreSQL', () => {
  it('a partition that is ahead of the others is not taken for a source that lost events, while somebody appends', async () => {
    await using world = await createWorld()
    const store = await world.open()
    const subscription = defineSubscription(balances, { partitions: 2 })
    const log = createLog({ store, events: bank })
    await log.append(keyIn(0, 2), [credited(1)])
    for (let i = 0; i < 15; i++)
      await log.append(
        keyIn(1, 2),
        Array.from({ length: 200 }, () => credited(1)),
      )
    // One partition is slower than the other: a busy key, a lock, a poor network.
    const { subscriptions } = store
    const slow: Store = {
      ...store,
      subscriptions: {
        ...subscriptions,
        commit: async (commit) => {
          if (commit.lease.partition === 1) await setTimeout(300)
          return subscriptions.commit(commit)
        },
      },
    }
    const first = world.engine(slow, [subscription], { page: { events: 100 } })
    await first.start()
    const admin = await world.client()
    const positions = async () =>
      (await admin.query('SELECT position::int FROM holdfast.holdfast_partitions ORDER BY partition')).rows.map(
        ({ position }) => Number(position),
      )
    await vi.waitFor(async () => expect((await positions())[0]).toBe(3001), { ...patience, interval: 5 })
    await first.stop()
    const [ahead, behind] = await positions()
    expect(ahead).toBe(3001)
    expect(behind).toBeLessThan(1900)
    await store.close()

    // An append of anybody that is under way: nothing unusual.
    const writer = await world.client()
    const again = await world.open()
    await writer.query('BEGIN')
    await createLog({ store: again, events: bank }).append('x', [credited(1)], { tx: writer })
    const second = world.engine(again, [subscription], { page: { events: 100 } })
    await second.start()
    await setTimeout(1_500)
    const state = await stateOf(second)
    await writer.query('COMMIT')
    if (state?.state === 'failed') console.log(state)
    expect(state).not.toMatchObject({ state: 'failed' })
    await second.drain()
  })

  it('an event that breaks a deferred constraint is held, and does not block its partition', async () => {
    await using world = await createWorld()
    const admin = await world.client()
    await admin.query(`CREATE TABLE parents (key text PRIMARY KEY);
      CREATE TABLE children (key text REFERENCES parents (key) DEFERRABLE INITIALLY DEFERRED)`)
    const children = defineSqlProjection('children', {
      events: bank,
      on: {
        Credited: (event, tx: Client) =>
          tx.query('INSERT INTO public.parents VALUES ($1) ON CONFLICT DO NOTHING', [event.key]),
        Debited: (event, tx: Client) => tx.query('INSERT INTO public.children VALUES ($1)', [event.key]),
      },
    })
    const store = await world.open()
    const log = createLog({ store, events: bank })
    await log.append('good', [credited(1), debited(1)])
    await log.append('bad', [debited(1)])
    const engine = world.engine(store, [defineSubscription(children, { partitions: 1 })])
    await engine.start()
    await vi.waitFor(async () => expect((await heldOf(engine, 'children')).map(({ lane }) => lane)).toEqual(['bad']), {
      timeout: 4_000,
    })
  })

  it('a serialization failure in a submittable query (cursor, COPY, stream) is not the fault of an event', async () => {
    await using world = await createWorld()
    let failures = 0
    const p = defineSqlProjection('submits', {
      events: bank,
      on: {
        Credited: (_, tx: Client) =>
          new Promise<void>((resolve, reject) => {
            const text = failures++ < 2 ? "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$" : 'SELECT 1'
            const query = tx.query(new Query(text))
            query.on('error', reject)
            query.on('end', () => resolve())
          }),
      },
    })
    const store = await world.open()
    await createLog({ store, events: bank }).append('a', [credited(1)])
    const engine = world.engine(store, [defineSubscription(p, { partitions: 1 })])
    await engine.start()
    await engine.drain()
    expect(await heldOf(engine, 'submits')).toEqual([])
  })

  it('a swallowed failure of a submittable query is the fault of its event, and blocks nobody', async () => {
    await using world = await createWorld()
    const p = defineSqlProjection('submits', {
      events: bank,
      on: {
        Credited: (_, tx: Client) =>
          new Promise<void>((resolve) => {
            const query = tx.query(new Query('SELECT 1/0'))
            query.on('error', () => resolve())
          }),
      },
    })
    const store = await world.open()
    await createLog({ store, events: bank }).append('a', [credited(1)])
    const engine = world.engine(store, [defineSubscription(p, { partitions: 1 })])
    await engine.start()
    await vi.waitFor(async () => expect(await heldOf(engine, 'submits')).toHaveLength(1), { timeout: 4_000 })
  })

  it("a client-side query_timeout (pg's own option) is not the fault of an event", async () => {
    await using world = await createWorld()
    const admin = await world.client()
    await admin.query('CREATE TABLE t (n int); INSERT INTO t VALUES (0)')
    const p = defineSqlProjection('waits', {
      events: bank,
      on: { Credited: (_, tx: Client) => tx.query('UPDATE public.t SET n = n + 1') },
    })
    const store = await world.open({ connection: { connectionString: world.url, query_timeout: 300 } })
    await createLog({ store, events: bank }).append('a', [credited(1)])
    const engine = world.engine(store, [defineSubscription(p, { partitions: 1 })])
    const locked = async (ms: number) => {
      await admin.query('BEGIN; LOCK TABLE t')
      await setTimeout(ms)
      await admin.query('COMMIT')
    }
    await engine.prepare()
    let over = false
    const outage = (async () => {
      while (!over) {
        await locked(450)
        await setTimeout(5)
      }
    })()
    await engine.start()
    await setTimeout(6_000)
    over = true
    await outage
    await engine.drain()
    expect(await heldOf(engine, 'waits')).toEqual([])
  })

  it('set_config and session locks of a user leave nothing behind in a session that others use', async () => {
    await using world = await createWorld()
    const store = await world.open({ connections: 2 })
    const seen: unknown[] = []
    const p = defineSqlProjection('leaks', {
      events: bank,
      on: {
        Credited: async ({ data }, tx: Client) => {
          const { rows } = await tx.query("SELECT current_setting('app.tenant', true) AS tenant")
          seen.push((rows[0] as { tenant: unknown }).tenant || undefined)
          if (data.amount === 1) await tx.query("SELECT set_config('app.tenant', 'one', false), pg_advisory_lock(4711)")
        },
      },
    })
    const log = createLog({ store, events: bank })
    const engine = world.engine(store, [defineSubscription(p, { partitions: 1 })], { page: { events: 1 } })
    await engine.start()
    for (let i = 1; i <= 6; i++) {
      await log.append(`a${i}`, [credited(i)])
      await engine.drain()
    }
    const admin = await world.client()
    const { rows } = await admin.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711")
    expect([seen, rows.length]).toEqual([[undefined, undefined, undefined, undefined, undefined, undefined], 0])
  })

  it('code in the transaction of an event may read the store, however few connections there are', async () => {
    await using world = await createWorld()
    const store = await world.open({ connections: 2 })
    const log = createLog({ store, events: bank })
    const reads = defineSqlProjection('reads', {
      events: bank,
      on: { Credited: async () => void (await store.letters.heldLanes('reads', 0)) },
    })
    for (let i = 0; i < 40; i++) await log.append(`k${i}`, [credited(1)])
    const engine = world.engine(store, [defineSubscription(reads, { partitions: 4 })])
    const failures: string[] = []
    engine.on('store.failed', ({ error }) => failures.push(String(error)))
    await engine.start()
    await engine.drain({ signal: AbortSignal.timeout(25_000) }).catch((error: unknown) => console.log('drain', error))
    expect(failures).toEqual([])
  }, 40_000)

  it('two engines of one name on one store would take their partitions from each other, so the second is refused', async () => {
    await using world = await createWorld()
    const store = await world.open()
    const [first, second] = [1, 2].map(() => world.engine(store, [balances], { name: 'worker' }))
    await first?.start()
    await expect(second?.start()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await first?.stop()
  })

  it('a lane commit that was under way when its connection was lost is not done twice', async () => {
    await using world = await createWorld()
    await using proxy = await createProxy({ url: world.url })
    const store = await world.open({ connection: proxy.url })
    const admin = await world.client()
    const locker = await world.client()
    const source = createScriptedSource()
    const engine = world.engine(store, [defineSubscription(balances, { source })])
    const credit = (version: number) => ({ key: 'a', type: 'Credited', version, data: { amount: 1 } })
    // Stops the commit of the lane, and only that: it is the one that lets the letter go.
    await engine.start()
    source.deliver(credit(1), credit(3))
    await engine.drain()
    await admin.query(`CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF NEW.status = 'resolved' THEN PERFORM pg_advisory_xact_lock_shared(99); END IF; RETURN NEW; END $$;
      CREATE TRIGGER wait BEFORE UPDATE ON holdfast.holdfast_letters FOR EACH ROW EXECUTE FUNCTION public.wait()`)
    await locker.query('SELECT pg_advisory_lock(99)')
    source.deliver(credit(2))
    const waiting = async () =>
      Number(
        (
          await admin.query(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
          )
        ).rows[0].count,
      )
    await vi.waitFor(async () => expect(await waiting()).toBe(1), { timeout: 5_000, interval: 3 })
    proxy.cut()
    await vi.waitFor(async () => expect(await waiting()).toBe(2), { timeout: 5_000, interval: 3 })
    await locker.query('SELECT pg_advisory_unlock(99)')
    await setTimeout(3_000)
    expect(await stateOf(engine)).not.toMatchObject({ state: 'failed' })
    expect(await countsOf(engine)).toMatchObject({ applied: 3, held: 0 })
  })

  it.for(['a long text in a column of its own', 'a rule with an SQLSTATE of its own'])(
    '%s is held, and does not block the partition',
    async (what) => {
      await using world = await createWorld()
      const store = await world.open()
      const notes = defineProjection('notes', {
        events: bank,
        initial: () => ({ owner: '' }),
        on: { Renamed: (_, { data }) => ({ owner: data.owner }) },
        columns: { owner: 'text' },
      })
      const log = createLog({ store, events: bank })
      const engine = world.engine(store, [defineSubscription(notes, { partitions: 1 })])
      await engine.prepare()
      if (what.startsWith('a rule')) {
        const admin = await world.client()
        await admin.query(`CREATE FUNCTION public.rule() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF length(NEW.owner) > 100 THEN RAISE EXCEPTION 'too long' USING ERRCODE = 'BANK1'; END IF; RETURN NEW; END $$;
        CREATE TRIGGER rule BEFORE INSERT OR UPDATE ON holdfast.notes FOR EACH ROW EXECUTE FUNCTION public.rule()`)
      }
      const owner = Array.from({ length: 1_000 }, (_, i) => Math.imul(i + 1, 0x9e3779b1).toString(36)).join('')
      await log.append('bad', [{ type: 'Renamed', data: { owner } }])
      await log.append('good', [{ type: 'Renamed', data: { owner: 'x' } }])
      await engine.start()
      await vi.waitFor(async () => expect((await heldOf(engine, 'notes')).map(({ lane }) => lane)).toEqual(['bad']), {
        timeout: 4_000,
      })
    },
  )

  it('goes on when the server has ended the transaction of code that hangs', async () => {
    await using world = await createWorld()
    const store = await world.open()
    let calls = 0
    const hangs = defineSqlProjection('hangs', {
      events: bank,
      on: { Credited: () => (calls++ === 0 ? new Promise(() => undefined) : undefined) },
    })
    await createLog({ store, events: bank }).append('a', [credited(1)])
    const engine = world.engine(store, [defineSubscription(hangs, { partitions: 1 })], { lease: '2s' })
    await engine.start()
    // idle_in_transaction_session_timeout is 10 seconds.
    await setTimeout(15_000)
    expect(calls).toBeGreaterThan(1)
  })

  it('reset says what the code of a user threw, and leaves nothing in the session', async () => {
    await using world = await createWorld()
    const store = await world.open({ connections: 2 })
    let isBad = true
    const resets = defineSqlProjection('resets', {
      events: bank,
      on: { Credited: () => undefined },
      reset: async (tx: Client) => {
        if (isBad) throw new TypeError('a mistake of mine')
        await tx.query("SET app.tenant = 'one'")
      },
    })
    const engine = world.engine(store, [resets])
    await engine.prepare()
    const operator = operatorOf(store, [resets])
    const thrown: unknown = await operator.reset('resets', 'a test').catch((error: unknown) => error)
    isBad = false
    await operator.reset('resets', 'a test')
    const seen: unknown[] = []
    const sees = defineSqlProjection('sees', {
      events: bank,
      on: {
        Credited: async (_, tx: Client) => {
          const { rows } = await tx.query("SELECT current_setting('app.tenant', true) AS tenant")
          seen.push((rows[0] as { tenant: unknown }).tenant || undefined)
        },
      },
    })
    const other = world.engine(store, [defineSubscription(sees, { partitions: 1 })], { page: { events: 1 } })
    const log = createLog({ store, events: bank })
    for (let i = 0; i < 6; i++) await log.append('a', [credited(1)])
    await other.start()
    await other.drain()
    expect(seen).not.toContain('one')
    expect(thrown).toBeInstanceOf(TypeError)
  })

  it('can be closed although code hangs in the transaction of an event', async () => {
    await using world = await createWorld()
    const store = await world.open()
    const hangs = defineSqlProjection('hangs', { events: bank, on: { Credited: () => new Promise(() => undefined) } })
    await createLog({ store, events: bank }).append('a', [credited(1)])
    const engine = world.engine(store, [defineSubscription(hangs, { partitions: 1 })])
    await engine.start()
    await setTimeout(500)
    await engine.stop({ timeout: '200ms' })
    expect(await Promise.race([store.close().then(() => 'closed'), setTimeout(6_000, 'still open')])).toBe('closed')
  })

  it('a deadlock behind a savepoint of the user, told in words of the user, is not the fault of the event', async () => {
    await using world = await createWorld()
    let failures = 0
    const p = defineSqlProjection('saves', {
      events: bank,
      on: {
        Credited: async (_, tx: Client) => {
          await tx.query('SAVEPOINT mine')
          try {
            if (failures++ < 2) await tx.query("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$")
          } catch (error) {
            await tx.query('ROLLBACK TO SAVEPOINT mine')
            // Without its cause, as people do.
            // oxlint-disable-next-line preserve-caught-error
            throw new Error(`could not write: ${String(error)}`)
          }
        },
      },
    })
    const store = await world.open()
    await createLog({ store, events: bank }).append('a', [credited(1)])
    const engine = world.engine(store, [defineSubscription(p, { partitions: 1 })])
    await engine.start()
    await engine.drain()
    expect(await heldOf(engine, 'saves')).toHaveLength(0)
  })

  it('a store whose engine died can be copied when its lease has ended, as the hint says', async () => {
    await using world = await createWorld()
    const from = await world.open()
    const to = await world.open({ schema: 'copy' })
    await from.subscriptions.register({ name: 's', table: { name: 's', columns: [] }, partitions: 1, start: 0 })
    await from.subscriptions.claim({ subscription: 's', partition: 0, owner: 'dead', leaseMs: 20 })
    await setTimeout(200)
    await expect(copyStore({ from, to })).resolves.toMatchObject({ counts: { subscription: 1 } })
  })

  it('sees a COMMIT behind an escape string that goes on in the next line, before anything is applied twice', async () => {
    await using world = await createWorld()
    const admin = await world.client()
    await admin.query('CREATE TABLE lines (key text)')
    const smuggles = defineSqlProjection('smuggles', {
      events: bank,
      on: {
        Credited: ({ key }, tx: Client) => tx.query('INSERT INTO public.lines VALUES ($1)', [key]),
        Debited: (_, tx: Client) => tx.query("SELECT E'a'\n'\\'' ; COMMIT; --"),
      },
    })
    const store = await world.open()
    const log = createLog({ store, events: bank })
    await log.append('a', [credited(1)])
    await log.append('b', [debited(1)])
    const engine = world.engine(store, [defineSubscription(smuggles, { partitions: 1 })])
    await engine.start()
    await setTimeout(1_500)
    const { rows } = await admin.query('SELECT key FROM lines')
    expect(rows.length).toBeLessThan(2)
  })
})

import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgSchema } from 'drizzle-orm/pg-core'
import { Kysely, PostgresDialect, type PostgresPool } from 'kysely'
import { Client, type PoolClient, Query } from 'pg'
import { expect, it } from 'vitest'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import type { Store } from '../../store.ts'
import type { Commit, Lease, Transaction } from '../../subscription/subscription-store.ts'
import { at, begin, claimBy, commitOf, deedOf } from '../../testing/contracts/fixtures.ts'

const broken = { code: 'TRANSACTION_BROKEN' }

describeServers('SQL of a user in our transaction', (server) => {
  const schemas = useSchemas(server)

  it('may not end it, in whatever form it is said, and it stays whole', async () => {
    await using bench = await prepare()
    const ways: ((client: Client) => unknown)[] = [
      (client) => client.query('COMMIT'),
      (client) => client.query('rollback -- never mind', []),
      (client) => client.query({ text: '/* now */ END' }),
      (client) => client.query({ text: 'BEGIN', rowMode: 'array' }, []),
      (client) => client.query(`INSERT INTO ${bench.notes} VALUES (7); COMMIT`),
      (client) => new Promise((done, fail) => client.query('ABORT', (error) => (error ? fail(error) : done(0)))),
      (client) => new Promise((done, fail) => client.query('ABORT', [], (error) => (error ? fail(error) : done(0)))),
      (client) => client.query(new Query('COMMIT')),
      (client) => client.end(),
      async (client) => (await (client as unknown as PostgresPool).connect()).query('COMMIT', []),
      async (client) => ((await (client as unknown as PostgresPool).connect()) as unknown as Client).end(),
      (client) => (client as unknown as PoolClient).release(),
    ]
    for (const [i, way] of ways.entries()) {
      const refused = bench.perform(async (tx) => {
        await tx.run(() => bench.add(tx, i))
        await tx.run(() => way(tx.handle as Client))
      })
      await expect(refused).rejects.toMatchObject(broken)
    }
    expect(await bench.all()).toEqual([])
    // The next event of the same page can go on behind it.
    await bench.perform(async (tx) => {
      await expect(tx.attempt(() => (tx.handle as Client).query('COMMIT'))).rejects.toMatchObject(broken)
      await tx.attempt(() => bench.add(tx, 1))
    })
    expect(await bench.all()).toEqual([1])
  })

  it('is found out when it ends it all the same', async () => {
    await using bench = await prepare()
    const smuggled = bench.perform(async (tx) => {
      await tx.run(async () => {
        const client = tx.handle as Client
        await client.query('SET standard_conforming_strings = off')
        await bench.add(tx, 1)
        // To us the string ends at the second quote, and to the server at the third.
        await client.query(String.raw`SELECT 'a\' '; COMMIT; SELECT ' '`)
      })
    })
    await expect(smuggled).rejects.toMatchObject(broken)
    const begunAgain = bench.perform(async (tx) => {
      await (tx.handle as Client).query('SET standard_conforming_strings = off')
      await (tx.handle as Client).query(String.raw`SELECT 'a\' '; COMMIT; BEGIN; SELECT ' '`)
    })
    await expect(begunAgain).rejects.toMatchObject(broken)
    expect(await bench.position()).toBe(0)
    // A procedure can't: the server refuses it in a transaction that it did not begin.
    await schemas.user.query(`CREATE PROCEDURE ${bench.schema}.ends() LANGUAGE plpgsql AS 'BEGIN COMMIT; END'`)
    const called = bench.perform((tx) => tx.run(() => (tx.handle as Client).query(`CALL ${bench.schema}.ends()`)))
    await expect(called).rejects.toMatchObject({ code: '2D000' })
    expect((await bench.perform(async (tx) => tx.run(() => bench.add(tx, 2)))).outcome).toBe('committed')
  })

  it('that failed and was passed over is brought up again', async () => {
    await using bench = await prepare()
    const swallow = async (tx: Transaction, n: number) => {
      await bench.add(tx, n).catch(() => undefined)
      await bench.add(tx, n).catch(() => undefined)
      await bench.add(tx, n + 1).catch(() => undefined)
    }
    const failing = bench.perform((tx) => tx.run(() => swallow(tx, 1)))
    await expect(failing).rejects.toMatchObject({ code: '23505' })
    const aborted = bench.perform((tx) =>
      tx.run(async () => {
        await swallow(tx, 1)
        await bench.add(tx, 5)
      }),
    )
    await expect(aborted).rejects.toMatchObject({ code: '23505' })
    await bench.perform(async (tx) => {
      await expect(tx.attempt(() => swallow(tx, 1))).rejects.toMatchObject({ code: '23505' })
      await tx.attempt(() => bench.add(tx, 9))
    })
    expect(await bench.all()).toEqual([9])
  })

  it('that nobody waited for belongs to its event, and comes too late after the transaction', async () => {
    await using bench = await prepare()
    let kept: Transaction | undefined
    await bench.perform(async (tx) => {
      kept = tx
      await expect(
        tx.attempt(() => {
          void bench.add(tx, 1)
          void bench.add(tx, 1)
        }),
      ).rejects.toMatchObject({ code: '23505' })
      await tx.attempt(() => void bench.add(tx, 2))
    })
    expect(await bench.all()).toEqual([2])
    await expect(bench.add(kept as Transaction, 3)).rejects.toMatchObject(broken)
    expect(await bench.all()).toEqual([2])
  })

  it('is not to blame for a connection that is lost, and the store goes on', async () => {
    await using bench = await prepare()
    const kill = async (tx: Transaction) => {
      await bench.add(tx, 1)
      await schemas.user.query('SELECT pg_terminate_backend($1)', [(tx.handle as { processID: number }).processID])
    }
    const gone = { name: 'StoreError', code: 'STORE_UNAVAILABLE' }
    await expect(bench.perform((tx) => tx.run(() => kill(tx)))).rejects.toMatchObject(gone)
    await expect(bench.perform((tx) => tx.attempt(() => kill(tx)))).rejects.toMatchObject(gone)
    const later = bench.perform(async (tx) => {
      await tx.run(() => kill(tx))
      await tx.run(() => bench.add(tx, 2))
    })
    await expect(later).rejects.toMatchObject(gone)
    const whenIdle = bench.perform(async (tx) => {
      await kill(tx)
      await new Promise((resolve) => setTimeout(resolve, 50))
    })
    await expect(whenIdle).rejects.toMatchObject(gone)
    expect(await bench.all()).toEqual([])
    expect((await bench.perform((tx) => tx.run(() => bench.add(tx, 3)))).outcome).toBe('committed')
  })

  it('runs again from the start after a failure that passes, whether it was passed over or not', async () => {
    await using bench = await prepare()
    const fail = (state: string) => `DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '${state}'; END $$`
    const runs: string[] = []
    for (const state of ['40001', '40P01', '55P03', '57014']) {
      const outcome = await bench.perform(async (tx) => {
        await tx.run(async () => {
          runs.push(state)
          if (runs.filter((run) => run === state).length > 1) return
          await bench.add(tx, 1)
          await (tx.handle as Client).query(fail(state)).catch(() => undefined)
        })
      })
      expect(outcome.outcome).toBe('committed')
    }
    expect(runs.length).toBe(8)
    const always = bench.perform((tx) => tx.run(() => (tx.handle as Client).query(fail('40001'))))
    await expect(always).rejects.toMatchObject({ name: 'StoreError', code: 'STORE_BUSY' })
    const full = bench.perform((tx) => tx.run(() => (tx.handle as Client).query(fail('53100'))))
    await expect(full).rejects.toMatchObject({ name: 'StoreError', code: 'STORE_UNAVAILABLE' })
    expect(await bench.all()).toEqual([])
  })

  it('keeps the errors of other connections for itself', async () => {
    await using bench = await prepare()
    const refused = Object.assign(new Error('no'), { code: 'ECONNREFUSED' })
    await expect(bench.perform((tx) => tx.run(() => Promise.reject(refused)))).rejects.toBe(refused)
    const elsewhere = bench.perform((tx) =>
      tx.run(() => schemas.user.query("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$")),
    )
    await expect(elsewhere).rejects.toMatchObject({ code: '40001' })
    await expect(bench.perform((tx) => tx.run(() => Promise.reject(null)))).rejects.toBe(null)
  })

  it('may use constraints that are looked at when the transaction ends, and each event answers for its own', async () => {
    await using bench = await prepare()
    await schemas.user.query(`CREATE TABLE ${bench.schema}.children (
      n integer REFERENCES ${bench.notes} (n) DEFERRABLE INITIALLY DEFERRED)`)
    const child = (tx: Transaction, n: number) =>
      (tx.handle as Client).query(`INSERT INTO ${bench.schema}.children VALUES ($1)`, [n])
    const together = bench.perform((tx) => tx.run(() => child(tx, 1)))
    await expect(together).rejects.toMatchObject({ code: '23503' })
    await bench.perform(async (tx) => {
      await expect(tx.attempt(() => child(tx, 1))).rejects.toMatchObject({ code: '23503' })
      await tx.attempt(async () => {
        await child(tx, 2)
        await bench.add(tx, 2)
      })
    })
    expect(await bench.all()).toEqual([2])
    await schemas.user.query(`CREATE FUNCTION ${bench.schema}.full() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$;
      CREATE CONSTRAINT TRIGGER late AFTER INSERT ON ${bench.schema}.children DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION ${bench.schema}.full()`)
    const full = bench.perform((tx) => tx.attempt(() => child(tx, 2)))
    await expect(full).rejects.toMatchObject({ name: 'StoreError', code: 'STORE_UNAVAILABLE' })
  })

  it('leaves nothing behind in a session that others use', async () => {
    await using bench = await prepare({ connections: 2 })
    const pidOf = async (statement: string) => {
      let pid = 0
      await bench.perform(async (tx) => {
        pid = (tx.handle as { processID: number }).processID
        await tx.run(() => (tx.handle as Client).query(statement))
      })
      return pid
    }
    const first = await pidOf("SET LOCAL search_path = 'nowhere'")
    expect(await pidOf("SET search_path = 'nowhere'")).toBe(first)
    expect(await pidOf('SELECT 1')).not.toBe(first)
  })

  it('can come from Kysely', async () => {
    await using bench = await prepare()
    const notes = `${bench.schema}.notes` as 'notes'
    await bench.perform(async (tx) => {
      const db = new Kysely<{ notes: { n: number } }>({
        dialect: new PostgresDialect({ pool: tx.handle as PostgresPool }),
      })
      await tx.attempt(() =>
        db
          .insertInto(notes)
          .values([{ n: 1 }, { n: 2 }])
          .execute(),
      )
      await expect(tx.attempt(() => db.insertInto(notes).values({ n: 1 }).execute())).rejects.toMatchObject({
        code: '23505',
      })
      await expect(
        tx.attempt(() => db.transaction().execute((inner) => inner.deleteFrom(notes).execute())),
      ).rejects.toMatchObject(broken)
      const rows = await db.selectFrom(notes).selectAll().orderBy('n').execute()
      expect(rows).toEqual([{ n: 1 }, { n: 2 }])
    })
    expect(await bench.all()).toEqual([1, 2])
  })

  it('can come from Drizzle', async () => {
    await using bench = await prepare()
    const notes = pgSchema(bench.schema).table('notes', { n: integer('n').primaryKey() })
    await bench.perform(async (tx) => {
      const db = drizzle({ client: tx.handle as Client })
      await tx.attempt(() => db.insert(notes).values([{ n: 1 }, { n: 2 }]))
      await expect(tx.attempt(() => db.insert(notes).values({ n: 1 }))).rejects.toMatchObject({
        cause: { code: '23505' },
      })
      const inner = tx.attempt(() => db.transaction((nested) => nested.delete(notes)))
      await expect(inner).rejects.toMatchObject({ cause: broken })
      expect(await db.select().from(notes).orderBy(notes.n)).toEqual([{ n: 1 }, { n: 2 }])
      const busy = tx.attempt(() =>
        db.execute(drizzleSql`DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$`),
      )
      await expect(busy).rejects.toMatchObject({ name: 'StoreError', code: 'STORE_UNAVAILABLE' })
    })
    expect(await bench.all()).toEqual([1, 2])
  })

  it('waits for nobody when it comes too late', async () => {
    await using bench = await prepare()
    await bench.store.subscriptions.release(bench.lease)
    await bench.store.subscriptions.claim(claimBy('two'))
    let ran = false
    const outcome = await bench.perform(async () => {
      ran = true
    })
    expect(outcome).toEqual({ outcome: 'fenced', epoch: bench.lease.epoch + 1, owner: 'two' })
    expect(ran).toBe(false)
  })

  it('is over before a pause is answered', async () => {
    await using bench = await prepare()
    let paused: Promise<void> | undefined
    const outcome = await bench.perform(async (tx) => {
      paused = bench.store.subscriptions.pause('s', { reason: 'stop', at: 1 }, deedOf('pause'))
      await tx.run(() => bench.add(tx, 1))
      await expect(Promise.race([paused, Promise.resolve('waiting')])).resolves.toBe('waiting')
    })
    expect(outcome.outcome).toBe('committed')
    await paused
    expect((await bench.perform((tx) => tx.run(() => bench.add(tx, 2)))).outcome).toBe('paused')
    expect(await bench.all()).toEqual([1])
  })

  interface Bench extends AsyncDisposable {
    readonly store: Store
    readonly schema: string
    readonly notes: string
    readonly lease: Lease
    add(tx: Transaction, n: number): Promise<unknown>
    all(): Promise<number[]>
    position(): Promise<number | undefined>
    perform(work: (tx: Transaction) => unknown): ReturnType<Store['subscriptions']['perform']>
  }

  async function prepare(options?: { connections: number }): Promise<Bench> {
    const schema = schemas.readySchema()
    const store = await schemas.open(schema, options)
    const lease = await begin(store.subscriptions)
    const notes = `${schema}.notes`
    await schemas.user.query(`CREATE TABLE ${notes} (n integer PRIMARY KEY)`)
    return {
      store,
      schema,
      notes,
      lease,
      add: (tx, n) => (tx.handle as Client).query(`INSERT INTO ${notes} VALUES ($1)`, [n]),
      all: async () => (await schemas.user.query(`SELECT n FROM ${notes} ORDER BY n`)).rows.map(({ n }) => Number(n)),
      position: async () => (await store.subscriptions.load('s', 0))?.checkpoint.position,
      perform: (work) =>
        store.subscriptions.perform(lease, async (tx): Promise<Commit> => {
          await work(tx)
          return { ...commitOf(lease), table: undefined, to: at(0) }
        }),
      [Symbol.asyncDispose]: () => store.close(),
    }
  }
})

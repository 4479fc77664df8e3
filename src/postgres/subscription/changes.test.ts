import type { Client } from 'pg'
import { expect, it } from 'vitest'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import type { Store } from '../../store.ts'
import type { RowChange } from '../../subscription/subscription-store.ts'
import { begin } from '../../testing/contracts/fixtures.ts'

describeServers('a rehearsal', (server) => {
  const schemas = useSchemas(server)

  it('tells what was made, changed and deleted, through savepoints and out of order', async () => {
    await using bench = await prepare()
    const changes = await bench.rehearse(async (tx, run) => {
      await tx.run(() => run(`INSERT INTO accounts VALUES ('new', 1), ('fleeting', 1)`))
      await tx.attempt(() => run(`UPDATE accounts SET n = n + 1 WHERE id IN ('a', 'new')`))
      await expect(
        tx.attempt(() => run(`DELETE FROM accounts; INSERT INTO accounts VALUES ('a', 1), ('a', 1)`)),
      ).rejects.toThrow('duplicate key')
      await tx.attempt(async () => {
        await run(`SAVEPOINT mine; DELETE FROM accounts WHERE id IN ('b', 'fleeting'); RELEASE SAVEPOINT mine`)
        await run(`UPDATE accounts SET n = n WHERE id = 'c'`)
        await run(`DELETE FROM accounts WHERE id = 'd'; INSERT INTO accounts VALUES ('d', 4)`)
      })
    })
    expect(byKey(changes)).toEqual([
      { table: 'accounts', before: { id: 'a', n: 1 }, after: { id: 'a', n: 2 } },
      { table: 'accounts', before: { id: 'b', n: 2 }, after: undefined },
      { table: 'accounts', before: undefined, after: { id: 'new', n: 2 } },
    ])
    expect(await bench.rows()).toEqual(['a 1', 'b 2', 'c 3', 'd 4'])
  })

  it('knows a row that was locked by one savepoint and deleted by another', async () => {
    await using bench = await prepare()
    const changes = await bench.rehearse(async (tx, run) => {
      // The check of the reference locks the account, so two transactions stand at the row at once.
      await tx.attempt(() => run(`INSERT INTO entries VALUES ('a', 9007199254740993, 1.50)`))
      await tx.attempt(() => run(`UPDATE accounts SET n = 5 WHERE id = 'a'`))
      await tx.attempt(() => run(`SELECT FROM accounts WHERE id = 'b' FOR KEY SHARE`))
      await tx.attempt(() => run(`DELETE FROM accounts WHERE id = 'b'`))
    })
    expect(byKey(changes)).toEqual([
      { table: 'accounts', before: { id: 'a', n: 1 }, after: { id: 'a', n: 5 } },
      { table: 'accounts', before: { id: 'b', n: 2 }, after: undefined },
      { table: 'entries', before: undefined, after: { account: 'a', big: 9007199254740993n, exact: '1.50' } },
    ])
  })

  it('tells of tables without a key what is gone and what is there', async () => {
    await using bench = await prepare()
    await schemas.user.query(`INSERT INTO ${bench.schema}.entries VALUES ('a', 1, 1), ('b', 2, 2)`)
    const changes = await bench.rehearse(async (tx, run) => {
      await tx.run(() => run(`UPDATE entries SET big = 3 WHERE account = 'a'`))
      await tx.attempt(() => run(`DELETE FROM entries WHERE account = 'b'`))
    })
    expect(byKey(changes)).toEqual([
      { table: 'entries', before: { account: 'a', big: 1, exact: '1' }, after: undefined },
      { table: 'entries', before: undefined, after: { account: 'a', big: 3, exact: '1' } },
      { table: 'entries', before: { account: 'b', big: 2, exact: '2' }, after: undefined },
    ])
  })

  it('takes names, keys and values as users have them', async () => {
    await using bench = await prepare()
    await schemas.user.query(`
      CREATE TABLE ${bench.schema}."It's ""odd""" ("Key's ""one""" timestamptz, n int, j json, b bytea, PRIMARY KEY ("Key's ""one""", n))`)
    const row = `('2026-01-01T00:00:00.123456Z', 1, '{"a": "\\u0000"}', '\\x00ff')`
    const insert = `INSERT INTO "It's ""odd""" VALUES ${row}`
    await schemas.user.query(`SET search_path = ${bench.schema}; ${insert}; RESET search_path`)
    const changes = await bench.rehearse(async (tx, run) => {
      await tx.attempt(() => run(`UPDATE "It's ""odd""" SET b = NULL`))
    })
    const common = { [`Key's "one"`]: '2026-01-01 00:00:00.123456+00', n: 1, j: '{"a": "\\u0000"}' }
    expect(changes).toEqual([
      {
        table: `"It's ""odd"""`,
        before: { ...common, b: Buffer.from([0, 255]) },
        after: { ...common, b: null },
      },
    ])
  })

  it('leaves out what others did meanwhile, what is ours, and what is nobody else’s', async () => {
    await using bench = await prepare()
    await begin(bench.store.subscriptions)
    const changes = await bench.rehearse(async (tx, run) => {
      await tx.run(() => run(`CREATE TEMPORARY TABLE scratch (n int); INSERT INTO scratch VALUES (1)`))
      await tx.run(() => run(`UPDATE accounts SET n = 9 WHERE id = 'a'`))
      await schemas.user.query(
        `UPDATE ${bench.schema}.accounts SET n = 7 WHERE id = 'b'; DELETE FROM ${bench.schema}.accounts WHERE id = 'c'`,
      )
      await tx.run(() => bench.store.log.append('k', [event], 'new', { tx: tx.handle }))
      await tx.run(() => run(`DELETE FROM accounts WHERE id = 'd'`))
    })
    expect(byKey(changes)).toEqual([
      { table: 'accounts', before: { id: 'a', n: 1 }, after: { id: 'a', n: 9 } },
      { table: 'accounts', before: { id: 'd', n: 4 }, after: undefined },
    ])
    expect(await bench.store.log.head()).toBe(0)
  })

  it('waits for nobody over a table that was emptied or made', async () => {
    await using bench = await prepare()
    const changes = await bench.rehearse(async (tx, run) => {
      await tx.run(() => run(`TRUNCATE entries; INSERT INTO entries VALUES ('a', 1, 1)`))
      await tx.run(() => run(`CREATE TABLE made (n int PRIMARY KEY); INSERT INTO made VALUES (1)`))
    })
    expect(changes.map(({ table, after }) => [table, after])).toEqual([
      ['entries', { account: 'a', big: 1, exact: '1' }],
      ['made', { n: 1 }],
    ])
  })

  it('fails of what would fail when it commits, and of what the user swallowed', async () => {
    await using bench = await prepare()
    const late = bench.rehearse(async (tx, run) => {
      await tx.run(() => run(`INSERT INTO entries VALUES ('nobody', 1, 1)`))
    })
    await expect(late).rejects.toMatchObject({ code: '23503' })
    const swallowed = bench.rehearse(async (tx, run) => {
      await tx.run(() => run('SELECT 1 / 0').catch(() => undefined))
    })
    await expect(swallowed).rejects.toMatchObject({ code: '22012' })
    const ended = bench.rehearse(async (tx, run) => {
      await tx.run(() => run('COMMIT'))
    })
    await expect(ended).rejects.toMatchObject({ code: 'TRANSACTION_BROKEN' })
  })

  it('gives no more than a person can look at', async () => {
    await using bench = await prepare()
    const changes = await bench.rehearse(async (tx, run) => {
      await tx.run(() => run(`INSERT INTO accounts SELECT 'many' || i, i FROM generate_series(1, 2000) AS i`))
    })
    expect(changes).toHaveLength(1_000)
    expect(await bench.rows()).toHaveLength(4)
  })

  const event = {
    id: 'e',
    type: 'T',
    schemaVersion: 1,
    time: '2026-01-01T00:00:00.000Z',
    body: '{}',
    metadata: undefined,
  }

  type Tx = Parameters<Parameters<Store['subscriptions']['rehearse']>[0]>[0]
  type Run = (text: string) => Promise<unknown>

  async function prepare() {
    const schema = schemas.readySchema()
    const store = await schemas.open(schema)
    await schemas.user.query(`
      CREATE TABLE ${schema}.accounts (id text PRIMARY KEY, n int);
      INSERT INTO ${schema}.accounts VALUES ('a', 1), ('b', 2), ('c', 3), ('d', 4);
      CREATE TABLE ${schema}.entries (account text REFERENCES ${schema}.accounts DEFERRABLE INITIALLY DEFERRED, big bigint, exact numeric)`)
    return {
      store,
      schema,
      rehearse: (work: (tx: Tx, run: Run) => Promise<void>) =>
        store.subscriptions.rehearse(async (tx) => {
          const run: Run = (text) => (tx.handle as Client).query(text)
          await tx.run(() => run(`SET LOCAL search_path = ${schema}`))
          await work(tx, run)
        }),
      rows: async () =>
        (await schemas.user.query(`SELECT * FROM ${schema}.accounts ORDER BY id`)).rows.map(
          ({ id, n }) => `${id} ${n}`,
        ),
      [Symbol.asyncDispose]: () => store.close(),
    }
  }
})

function byKey(changes: readonly RowChange[]): RowChange[] {
  const keyOf = ({ table, before, after }: RowChange) => `${table} ${Object.values(before ?? after ?? {})[0] as string}`
  return changes.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : keyOf(a) > keyOf(b) ? 1 : a.after ? 1 : -1))
}

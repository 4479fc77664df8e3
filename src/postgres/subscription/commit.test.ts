import { expect, it } from 'vitest'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import type { NewLetter } from '../../dead-letter/letter.ts'
import { describeFailure } from '../../failure/failure.ts'
import type { RowWrite } from '../../projection/row-store.ts'
import type { Store } from '../../store.ts'
import type { Commit, Lease } from '../../subscription/subscription-store.ts'
import {
  at,
  begin,
  claimBy,
  commitOf,
  letter,
  limits,
  newEvent,
  queueOf,
  row,
  table,
} from '../../testing/contracts/fixtures.ts'

describeServers('a commit', (server) => {
  const schemas = useSchemas(server)

  it('keeps the exact text of rows, and of keys that look like syntax', async () => {
    await using bench = await prepare()
    const texts = [
      '{"n":9007199254740993,"z":-0}',
      '"\\u0000\\ud800"',
      '{ "b":1,  "a":2, "b":3 }',
      '[]',
      '"ü🦑\\\\\\"{},"',
      'null',
    ]
    const keys = ['"', '\\', '{}', ',', 'NULL', "'; DROP TABLE x; --"]
    const rows = keys.map((key, i): RowWrite => ({ ...row(key, 1), json: texts[i] as string, columns: [1, key, null] }))
    expect(await bench.commit({ rows })).toEqual({ outcome: 'committed' })
    const found = await bench.store.rows.load(table, [...keys, 'a\0b', '\ud800'])
    expect(keys.map((key) => found.get(key)?.json)).toEqual(texts)
    expect(found.size).toBe(keys.length)
    const where = [{ column: 'owner', is: 'in' as const, values: keys }]
    const listed = await bench.store.rows.list(table, {
      where,
      orderBy: { column: 'owner', direction: 'asc' },
      after: undefined,
      limit: 10,
    })
    expect(listed.map(({ columns }) => columns[1])).toEqual(keys.toSorted())
  })

  it('folds what it says about one letter, held in it or before it', async () => {
    await using bench = await prepare()
    const failure = describeFailure(new Error('first'), 'permanent', 'fold')
    const second = describeFailure(new Error('second'), 'transient', 'sql')
    const [a, b, c] = [letter('a', 1, 'parked'), letter('b', 1, 'waiting'), letter('c', 1, 'queued')]
    const positionOf = (held: NewLetter) => held.event.position
    await bench.commit({
      at: 5,
      held: [{ ...a, failure }, b, c],
      letters: [
        { change: 'failed', position: positionOf(a), status: 'parked', failure: second },
        { change: 'status', position: positionOf(b), status: 'retrying' },
        { change: 'status', position: positionOf(b), status: 'queued' },
        { change: 'failed', position: positionOf(c), status: 'parked', failure },
        { change: 'resolved', position: positionOf(c), by: 'engine' },
      ],
    })
    const summary = async () =>
      (await bench.store.letters.list({ subscription: 's' })).map((held) => ({
        lane: held.lane,
        status: held.status,
        attempts: held.attempts.map((attempt) => [attempt.at, attempt.failure.message]),
        last: held.failure?.message,
        ended: held.endedAt,
      }))
    const first = [
      {
        lane: 'a',
        status: 'parked',
        attempts: [
          [5, 'first'],
          [5, 'second'],
        ],
        last: 'second',
        ended: undefined,
      },
      { lane: 'b', status: 'queued', attempts: [], last: undefined, ended: undefined },
      { lane: 'c', status: 'resolved', attempts: [[5, 'first']], last: 'first', ended: 5 },
    ]
    expect(await summary()).toEqual(first)
    await bench.commit({
      at: 6,
      letters: [
        { change: 'failed', position: positionOf(a), status: 'parked', failure },
        { change: 'failed', position: positionOf(a), status: 'parked', failure: second },
        { change: 'status', position: positionOf(a), status: 'retrying' },
        { change: 'failed', position: positionOf(b), status: 'parked', failure },
      ],
    })
    expect(await summary()).toEqual([
      {
        ...first[0],
        status: 'retrying',
        attempts: [
          [5, 'first'],
          [5, 'second'],
          [6, 'first'],
          [6, 'second'],
        ],
      },
      { ...first[1], status: 'parked', attempts: [[6, 'first']], last: 'first' },
      first[2],
    ])
  })

  it('folds what it says about a letter that the log has, and that only queued', async () => {
    await using bench = await prepare()
    await bench.store.log.append('a', [newEvent('1'), newEvent('2')], 'new')
    const { events } = await bench.store.log.readAll(0, limits)
    const held = events.map((event, i): NewLetter => {
      return {
        lane: 'a',
        sequence: i + 1,
        status: i === 0 ? 'parked' : 'queued',
        logged: true,
        event,
        failure: undefined,
      }
    })
    const failure = describeFailure(new Error('no'), 'permanent', 'fold')
    const position = events[1]?.position ?? 0
    await bench.commit({ held, letters: [{ change: 'failed', position, status: 'parked', failure }] })
    const { rows } = await schemas.user.query(
      `SELECT lane, status FROM ${bench.schema}.holdfast_letters ORDER BY position`,
    )
    expect(rows).toEqual([
      { lane: 'a', status: 'parked' },
      { lane: null, status: 'parked' },
    ])
    const { letters } = await queueOf(bench.store, 's', 0, 'a', limits)
    expect(letters.map(({ event }) => event)).toEqual(events)
    expect(letters[1]?.failure).toEqual(failure)
  })

  it('takes the last of what it says about one lane', async () => {
    await using bench = await prepare()
    const hold = (head: number) =>
      ({ lane: 'a', status: 'parked', since: 1, done: undefined, head, headPosition: head }) as const
    await bench.commit({
      lanes: [
        { lane: 'a', hold: hold(1), done: undefined },
        { lane: 'a', hold: undefined, done: undefined },
        { lane: 'a', hold: hold(2), done: undefined },
        { lane: 'b', hold: undefined, done: 7 },
        { lane: 'b', hold: undefined, done: undefined },
      ],
    })
    expect(await bench.store.letters.heldLanes('s', 0)).toEqual([hold(2)])
    expect(await bench.store.letters.laneVersions('s', ['a', 'b'])).toEqual(new Map())
  })

  it.each([
    ['a check', (name: string) => `ALTER TABLE ${name} ADD CHECK (balance <> 777)`, '23514'],
    [
      'a reference that is looked at when the transaction ends',
      (name: string) => `CREATE TABLE ${name}_owners (balance bigint PRIMARY KEY);
        INSERT INTO ${name}_owners SELECT n FROM generate_series(0, 2000) AS n WHERE n <> 777;
        ALTER TABLE ${name} ADD FOREIGN KEY (balance) REFERENCES ${name}_owners DEFERRABLE INITIALLY DEFERRED`,
      '23503',
    ],
    [
      'a trigger',
      (name: string) => `CREATE FUNCTION ${name}_rule() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN IF NEW.balance = 777 THEN RAISE EXCEPTION 'never'; END IF; RETURN NEW; END $$;
        CREATE TRIGGER rule BEFORE INSERT ON ${name} FOR EACH ROW EXECUTE FUNCTION ${name}_rule()`,
      'P0001',
    ],
    [
      'a column that is computed',
      (name: string) => `ALTER TABLE ${name} ADD share bigint GENERATED ALWAYS AS (balance / (balance - 777)) STORED`,
      '22012',
    ],
  ])('finds the one row of a thousand that breaks %s', async (_, rule, code) => {
    await using bench = await prepare()
    const rows = Array.from({ length: 1_000 }, (_row, i) => row(`key-${i}`, i + 1))
    await schemas.user.query(rule(`${bench.schema}.balances`))
    const outcome = await bench.commit({ rows })
    expect(outcome).toMatchObject({ outcome: 'rejected', key: 'key-776', error: { code } })
    expect((await bench.store.subscriptions.load('s', 0))?.checkpoint.position).toBe(0)
    expect((await bench.commit({ rows: rows.toSpliced(776, 1) })).outcome).toBe('committed')
  })

  it('blames the later of two rows that can not both be', async () => {
    await using bench = await prepare()
    await schemas.user.query(`CREATE UNIQUE INDEX ON ${bench.schema}.balances (owner)`)
    const named = (key: string, owner: string): RowWrite => ({ ...row(key, 1), columns: [1, owner, null] })
    const rows = [named('a', 'x'), named('b', 'y'), named('c', 'x'), named('d', 'y')]
    expect(await bench.commit({ rows })).toMatchObject({ outcome: 'rejected', key: 'c', error: { code: '23505' } })
  })

  it('looks for nobody to blame when it came too late', async () => {
    await using bench = await prepare()
    await schemas.user.query(`ALTER TABLE ${bench.schema}.balances ADD CHECK (balance < 0) NOT VALID`)
    await bench.store.subscriptions.release(bench.lease)
    await bench.store.subscriptions.claim(claimBy('two'))
    expect(await bench.commit({ rows: [row('a', 1)] })).toMatchObject({ outcome: 'fenced', owner: 'two' })
  })

  it('blames no row for a rule that only a whole page breaks', async () => {
    await using bench = await prepare()
    await schemas.user.query(`CREATE FUNCTION ${bench.schema}.few() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF (SELECT count(*) FROM added) > 2 THEN RAISE EXCEPTION 'too many'; END IF; RETURN NULL; END $$;
      CREATE TRIGGER few AFTER INSERT ON ${bench.schema}.balances REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION ${bench.schema}.few()`)
    const rows = ['a', 'b', 'c', 'd'].map((key) => row(key, 1))
    await expect(bench.commit({ rows })).rejects.toMatchObject({ name: 'StoreError', code: 'STORE_REFUSED' })
  })

  it('is stopped by rows that were not written, whoever kept them out', async () => {
    await using bench = await prepare()
    await bench.commit({ to: at(1), rows: [row('b', 9)] })
    const older = bench.commit({
      from: 1,
      to: at(2),
      rows: [row('a', 1), row('b', 9), row('c', 1)],
      held: [letter('x', 1, 'parked')],
    })
    await expect(older).rejects.toMatchObject({ code: 'INTERNAL', message: expect.stringContaining('"b"') })
    await schemas.user.query(`CREATE FUNCTION ${bench.schema}.skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
      CREATE TRIGGER skip BEFORE INSERT ON ${bench.schema}.balances FOR EACH ROW EXECUTE FUNCTION ${bench.schema}.skip()`)
    const skipped = bench.commit({ from: 1, to: at(2), rows: [row('d', 1)] })
    await expect(skipped).rejects.toMatchObject({ code: 'INTERNAL', message: expect.stringContaining('trigger') })
    expect((await bench.store.subscriptions.load('s', 0))?.checkpoint.position).toBe(1)
    expect(await bench.store.letters.list({ subscription: 's' })).toEqual([])
  })

  it('and its letters are the store’s own matter when our own rules are broken', async () => {
    await using bench = await prepare()
    const twice = [letter('b', 1, 'parked'), letter('b', 1, 'parked')]
    await expect(bench.commit({ rows: [row('a', 1)], held: twice })).rejects.toMatchObject({
      name: 'StoreError',
      code: 'STORE_REFUSED',
    })
  })

  it('waits for a deadlock to pass, and is done', async () => {
    await using bench = await prepare()
    await bench.commit({ to: at(1), rows: [row('a', 1), row('b', 1)] })
    // Somebody holds a row of the page, and then wants the partition that the commit holds.
    await schemas.user.query('BEGIN')
    await schemas.user.query(`UPDATE ${bench.schema}.balances SET balance = 5 WHERE key = 'b'`)
    const commit = bench.commit({ from: 1, to: at(2), rows: [row('a', 2), row('b', 2)] })
    await bench.untilWaiting()
    const other = schemas.user
      .query(`UPDATE ${bench.schema}.holdfast_partitions SET applied = applied`)
      .catch((error: Error) => error)
    await other
    await schemas.user.query('ROLLBACK')
    expect(await commit).toEqual({ outcome: 'committed' })
    expect((await bench.store.rows.load(table, ['b'])).get('b')?.version).toBe(2)
  })

  it('and a claim exclude each other', async () => {
    await using bench = await prepare()
    await schemas.user.query('BEGIN')
    await schemas.user.query(
      `INSERT INTO ${bench.schema}.balances (key, version, position, data) VALUES ('b', 0, 0, '{}')`,
    )
    const commit = bench.commit({ to: at(1), rows: [row('b', 1)] })
    await bench.untilWaiting()
    await schemas.user.query('SAVEPOINT x')
    // Long run out, but the owner is just writing.
    await expect(
      schemas.user.query(`SELECT FROM ${bench.schema}.holdfast_partitions FOR UPDATE NOWAIT`),
    ).rejects.toMatchObject({ code: '55P03' })
    await schemas.user.query('ROLLBACK')
    expect(await commit).toEqual({ outcome: 'committed' })
  })

  interface Bench extends AsyncDisposable {
    readonly store: Store
    readonly schema: string
    readonly lease: Lease
    commit(page: Partial<Commit>): ReturnType<Store['subscriptions']['commit']>
    untilWaiting(): Promise<void>
  }

  async function prepare(): Promise<Bench> {
    const schema = schemas.readySchema()
    const store = await schemas.open(schema)
    const lease = await begin(store.subscriptions)
    return {
      store,
      schema,
      lease,
      commit: (page) => store.subscriptions.commit({ ...commitOf(lease), ...page }),
      untilWaiting: async () => {
        const sql = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE '%${schema}%'`
        await expect.poll(async () => (await schemas.user.query(sql)).rowCount).toBe(1)
      },
      [Symbol.asyncDispose]: () => store.close(),
    }
  }
})

import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLog } from '../index.ts'
import { createVirtualRuntime } from '../testing/virtual.ts'
import { queueOf } from '../testing/contracts/fixtures.ts'
import { Database, pragmas } from './connection/database.ts'
import { createHolder, forgetHolder, isGone } from './connection/holder.ts'
import { createSqliteStore } from './index.ts'
import { migrate } from './migrations/migrate.ts'
import { migrations } from './migrations/index.ts'
import { nodeSqlite } from './connection/node.ts'

let folder: string
let files = 0
const newFile = () => join(folder, `${++files}.db`)
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-sqlite-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const tablesOf = (file: string) => {
  const db = new DatabaseSync(file)
  const tables = db
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
    .all()
  db.close()
  return tables.map(({ name }) => name)
}

describe('the file', () => {
  it('is in WAL mode', async () => {
    const file = newFile()
    await using store = await createSqliteStore({ file })
    await createLog({ store }).append('a', [{ type: 'T', data: 1 }])
    const db = new DatabaseSync(file)
    expect(db.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
    db.close()
  })

  it('keeps its log from being changed, by whoever', async () => {
    const file = newFile()
    await using store = await createSqliteStore({ file })
    await createLog({ store }).append('a', [{ type: 'T', data: 1 }])
    const db = new DatabaseSync(file)
    expect(() => db.exec("UPDATE holdfast_events SET data = '2'")).toThrow('append-only')
    expect(() => db.exec('DELETE FROM holdfast_events')).toThrow('append-only')
    db.close()
  })

  it('is refused with what to do when it can not be used', async () => {
    await expect(createSqliteStore({ file: ':memory:' })).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(createSqliteStore({ file: join(folder, 'no', 'such', 'x.db') })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    const text = newFile()
    await writeFile(text, 'this is not a database, it is a text that is long enough to be one')
    await expect(createSqliteStore({ file: text })).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  })

  it('says that it is closed', async () => {
    const store = await createSqliteStore({ file: newFile() })
    await store.close()
    await store.close()
    await expect(store.log.head()).rejects.toMatchObject({ code: 'STORE_CLOSED' })
    await expect(createLog({ store }).append('a', [{ type: 'T', data: 1 }])).rejects.toMatchObject({
      code: 'STORE_CLOSED',
    })
  })

  it('waits out another process that holds it, and only then gives up', async () => {
    const file = newFile()
    await using store = await createSqliteStore({ file, busyTimeout: '5ms' })
    const other = new DatabaseSync(file)
    other.exec('BEGIN IMMEDIATE')
    const log = createLog({ store })
    await expect(log.append('a', [{ type: 'T', data: 1 }])).rejects.toMatchObject({ code: 'STORE_BUSY' })
    const appended = log.append('a', [{ type: 'T', data: 2 }])
    setImmediate(() => other.exec('ROLLBACK'))
    expect(await appended).toMatchObject({ version: 1 })
    other.close()
  })

  it('keeps a bounded number of prepared statements', () => {
    const db = new Database(newFile(), { busyMs: 10 })
    for (let i = 0; i < 500; i++) expect(db.get(`SELECT ${i} AS n`)).toEqual({ n: i })
    expect(db.statementCount).toBeLessThanOrEqual(100)
    db.close()
  })
})

describe('appends that are asked for together', () => {
  it('share a commit, and each gets its own answer', async () => {
    await using store = await createSqliteStore({ file: newFile() })
    const log = createLog({ store })
    const event = { type: 'T', data: 1 }
    await log.append('taken', [{ ...event, id: 'x' }])
    const before = await store.log.head()
    const answers = await Promise.allSettled([
      log.append('a', [event, event], { expectedVersion: 'new' }),
      log.append('a', [event], { expectedVersion: 'new' }),
      log.append('a', [event], { expectedVersion: 2 }),
      log.append('b', [{ ...event, id: 'x' }]),
      log.append('taken', [{ ...event, id: 'x' }]),
      log.append('c', [event]),
    ])
    expect(answers).toMatchObject([
      { value: { version: 2, repeated: false } },
      { reason: { code: 'EXPECTED_VERSION', actual: 2 } },
      { value: { version: 3 } },
      { reason: { code: 'EVENT_ID_CONFLICT' } },
      { value: { repeated: true } },
      { value: { version: 1 } },
    ])
    expect((await store.log.head()) - before).toBe(4)
  })

  it('are answered one by one when the commit of all of them fails', async () => {
    const file = newFile()
    await using store = await createSqliteStore({ file })
    const db = new DatabaseSync(file)
    // A fault that only one of them meets.
    db.exec(
      `CREATE TRIGGER refuse BEFORE INSERT ON holdfast_events WHEN NEW.key = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END`,
    )
    db.close()
    const log = createLog({ store })
    const event = { type: 'T', data: 1 }
    const answers = await Promise.allSettled(['a', 'bad', 'c'].map((key) => log.append(key, [event])))
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(answers[1]).toMatchObject({ reason: { code: 'STORE_REFUSED' } })
    expect(await store.log.head()).toBe(2)
  })
})

describe('migrations', () => {
  const first = { name: 'one', sql: 'CREATE TABLE one (a); CREATE TABLE two (b);' }

  it('leave nothing half done when one fails in the middle', () => {
    const file = newFile()
    const db = new Database(file, { busyMs: 10 })
    const broken = { name: 'broken', sql: 'CREATE TABLE three (c); INSERT INTO nowhere VALUES (1);' }
    expect(() => migrate(db, [first, broken], 0)).toThrow(expect.objectContaining({ code: 'STORE_REFUSED' }))
    expect(tablesOf(file)).toEqual([])
    migrate(db, [first], 0)
    expect(() => migrate(db, [first, broken], 0)).toThrow('nowhere')
    expect(tablesOf(file)).toEqual(['holdfast_migrations', 'one', 'two'])
    db.close()
  })

  it('run once each, and again only the new ones', () => {
    const file = newFile()
    const db = new Database(file, { busyMs: 10 })
    migrate(db, [first], 1)
    migrate(db, [first], 2)
    migrate(db, [first, { name: 'next', sql: 'CREATE TABLE next (c)' }], 3)
    expect(db.all('SELECT number, name, applied_at FROM holdfast_migrations')).toEqual([
      { number: 1, name: 'one', applied_at: 1 },
      { number: 2, name: 'next', applied_at: 3 },
    ])
    db.close()
  })

  it('make an older program refuse a newer schema, and change nothing', async () => {
    const file = newFile()
    const db = new Database(file, { busyMs: 10 })
    migrate(db, [...migrations, { name: 'the-future', sql: 'CREATE TABLE future (x)' }], 0)
    db.close()
    const before = tablesOf(file)
    await expect(createSqliteStore({ file })).rejects.toMatchObject({
      code: 'SCHEMA_NEWER',
      message: expect.stringContaining('the-future') as string,
    })
    expect(tablesOf(file)).toEqual(before)
  })

  it('are refused when one of them is not the one that was applied', () => {
    const db = new Database(newFile(), { busyMs: 10 })
    migrate(db, [first], 0)
    const changed = [{ ...first, sql: `${first.sql} -- changed` }]
    expect(() => migrate(db, changed, 0)).toThrow(expect.objectContaining({ code: 'MIGRATION_CHANGED' }))
    db.close()
  })

  it('bring up a file of the first release with everything in it', async () => {
    const file = newFile()
    const old = new Database(file, { busyMs: 10 })
    old.exec(pragmas)
    migrate(old, migrations.slice(0, 1), 0)
    old.exec(`
      INSERT INTO holdfast_events (id, key, version, type, schema_version, time, data, metadata, appended_at)
        VALUES ('e1', 'a', 1, 'T', 1, 't', '1', NULL, 5), ('e2', 'a', 2, 'T', 1, 't', '2', '{}', 6);
      INSERT INTO holdfast_subscriptions VALUES ('s', 'S_table', '[]', 7, 8, 'a bug'), ('t', 't_table', '[]', 9, NULL, NULL);
      INSERT INTO holdfast_partitions VALUES ('s', 0, 3, 'one', '{"host":"h"}', 99, 0, 2, 'e2', 'T', 't', 11, 4, 0, 1, 4, 0),
        ('t', 0, 0, NULL, NULL, 0, 5, 5, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0);
      CREATE TABLE S_table (key TEXT PRIMARY KEY, version INTEGER NOT NULL, position INTEGER NOT NULL, data TEXT NOT NULL);
      INSERT INTO holdfast_lanes VALUES ('s', 'a', 0, 0, 'parked', 12, 1, 1), ('s', 'k', 0, 3, NULL, NULL, NULL, NULL);
      INSERT INTO holdfast_letters (subscription, partition, position, status, logged, held_at, lane, sequence, event_id, type, key,
        version, schema_version, time, data, metadata, class, fingerprint, attempts, ended_at, ended_by)
        VALUES ('s', 0, 1, 'parked', 1, 12, 'a', 1, 'e1', 'T', 'a', 1, 1, 't', '1', NULL, 'permanent', 'f', '[]', NULL, NULL),
        ('s', 0, 2, 'queued', 1, 13, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        ('s', 0, 7, 'resolved', 0, 14, 'b', 4, 'x7', 'T', 'b', NULL, 2, 't', '007', NULL, NULL, NULL, NULL, 20, 'me'),
        ('s', 0, 9, 'waiting', 0, 15, 'b', 5, 'x9', 'T', 'b', NULL, 2, 't', x'ff00', NULL, NULL, NULL, NULL, NULL, NULL);
      CREATE VIEW mine AS SELECT count(*) AS n FROM holdfast_dead_letters WHERE subscription = 's'`)
    const tables = ['subscriptions', 'partitions', 'lanes', 'letters', 'dead_letters', 'events']
    const everything = (db: Database) =>
      tables.map((name) => [name, db.all(`SELECT * FROM holdfast_${name} ORDER BY 1, 2, 3`)])
    const before = everything(old)
    old.close()

    await using store = await createSqliteStore({ file })
    const db = new Database(file, { busyMs: 10 })
    // It counts commits since.
    expect(everything(db)).toMatchObject(before)
    expect(db.get('SELECT n FROM mine')).toEqual({ n: 4 })
    expect(db.all('PRAGMA foreign_key_check')).toEqual([])
    expect(db.all('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
    expect(db.all("SELECT name FROM sqlite_schema WHERE name LIKE 'holdfast_0002%'")).toEqual([])
    db.close()
    const letters = await store.letters.list({ subscription: 's' })
    expect(letters.map(({ event }) => event.body)).toEqual(['1', '2', '007', new Uint8Array([0xff, 0])])
    expect((await queueOf(store, 's', 0, 'a', { events: 9, bytes: 9 })).letters).toHaveLength(2)
    expect(await store.subscriptions.load('s', 0)).toMatchObject({ epoch: 3, pause: { reason: 'a bug' } })
    const table = { name: 's_TABLE', columns: [] }
    const spec = { name: 's', table, start: 0, partitions: undefined }
    expect(await store.subscriptions.register(spec)).toEqual({ partitions: 1, version: 1 })
    await expect(store.subscriptions.register({ ...spec, name: 'u' })).rejects.toMatchObject({
      code: 'PROJECTION_TABLE_TAKEN',
    })
  })

  it('bring up a file from before there were handlers, whatever somebody put over it', async () => {
    const file = newFile()
    const old = new Database(file, { busyMs: 10 })
    old.exec(pragmas)
    migrate(old, migrations.slice(0, 2), 0)
    old.exec(`
      INSERT INTO holdfast_events (id, key, version, type, schema_version, time, data, appended_at)
        VALUES ('e1', 'a', 1, 'T', 1, 't', '1', 5);
      INSERT INTO holdfast_subscriptions VALUES ('s', 's', '[]', 7, NULL, NULL), ('t', NULL, '[]', 9, NULL, NULL);
      INSERT INTO holdfast_partitions (subscription, partition, epoch, owner, start, position, held)
        VALUES ('s', 0, 3, 'one', 0, 9, 2), ('t', 0, 0, NULL, 5, 5, 0);
      INSERT INTO holdfast_lanes VALUES ('s', 'a', 0, 0, 'retrying', 12, 1, 1), ('s', 'b', 0, 3, NULL, NULL, NULL, NULL);
      INSERT INTO holdfast_letters (subscription, partition, position, status, logged, held_at, lane, sequence, data, ended_at, ended_by)
        VALUES ('s', 0, 1, 'retrying', 1, 12, NULL, NULL, NULL, NULL, NULL), ('s', 0, 7, 'resolved', 0, 14, 'b', 4, '007', 20, 'me');
      CREATE VIEW mine AS SELECT * FROM holdfast_dead_letters;
      CREATE VIEW lanes AS SELECT * FROM holdfast_lanes`)
    const tables = ['subscriptions', 'partitions', 'lanes', 'letters', 'dead_letters']
    const everything = (db: Database) => tables.map((name) => db.all(`SELECT * FROM holdfast_${name} ORDER BY 1, 2, 3`))
    const before = everything(old)
    old.close()

    await using store = await createSqliteStore({ file })
    const db = new Database(file, { busyMs: 10 })
    expect(everything(db)).toMatchObject(before)
    expect(db.all('SELECT status, ended_reason FROM mine')).toHaveLength(2)
    expect(db.all('SELECT lane, due_at FROM lanes')).toHaveLength(2)
    expect(db.all('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
    db.close()
    expect(await store.subscriptions.load('s', 0)).toMatchObject({ epoch: 3, marks: [], tried: undefined, trials: [] })
    const lane = { lane: 'a', status: 'retrying', since: 12, done: 0, head: 1, headPosition: 1 }
    expect(await store.letters.heldLanes('s', 0)).toStrictEqual([lane])
    const [view] = await store.subscriptions.attend({ owner: 'one', subscriptions: ['s'], leaseMs: 1_000 })
    expect(view?.partitions).toMatchObject([{ isDue: true }])
    const spec = { name: 't', table: undefined, start: 0, partitions: undefined }
    expect(await store.subscriptions.register(spec)).toEqual({ partitions: 1, version: 1 })
    await expect(store.subscriptions.register({ ...spec, kind: 'handler' })).rejects.toThrow(
      'The subscription t was a SQL projection and is a handler now.',
    )
  })

  it('are run by one of many that open the file at once', async () => {
    const file = newFile()
    const stores = await Promise.all(Array.from({ length: 5 }, () => createSqliteStore({ file })))
    const db = new DatabaseSync(file)
    expect(db.prepare('SELECT count(*) AS n FROM holdfast_migrations').get()).toEqual({ n: migrations.length })
    db.close()
    for (const store of stores) await store.close()
  })
})

describe('a Node that is too old', () => {
  it('is refused with the version it needs', () => {
    expect(() => nodeSqlite('20.20.2', () => undefined)).toThrow(
      expect.objectContaining({
        code: 'NODE_TOO_OLD',
        message: expect.stringMatching(/Node 24 .*Node 20\.20\.2/) as string,
      }),
    )
    expect(nodeSqlite()).toHaveProperty('DatabaseSync')
  })
})

describe('the holder of a lease', () => {
  it('is gone when its process has ended, and not before', async () => {
    const self = createHolder()
    const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'])
    const holder = JSON.stringify({ ...self, pid: child.pid, ticks: undefined, store: 'theirs' })
    expect(isGone(holder, self)).toBe(false)
    await new Promise((resolve) => {
      child.once('exit', resolve)
      child.kill('SIGKILL')
    })
    expect(isGone(holder, self)).toBe(true)
    expect(isGone(holder.replace(self.host, 'elsewhere'), self)).toBe(false)
    expect(isGone(null, self)).toBe(false)
    expect(isGone(JSON.stringify(self), self)).toBe(false)
    // Another thread, or another copy of the package, of this very process.
    expect(isGone(JSON.stringify({ ...self, store: 'theirs' }), self)).toBe(false)
    const earlier = { ...self, store: 'theirs', ticks: undefined, began: self.began - 60_000 }
    expect(isGone(JSON.stringify(earlier), self)).toBe(true)
    expect(isGone(JSON.stringify({ ...earlier, namespace: 'of another container' }), self)).toBe(false)
    forgetHolder(self)
    expect(isGone(JSON.stringify(self), self)).toBe(true)
  })

  it('lets the next store of this process go on at once when it was closed without a word', async () => {
    const { clock } = createVirtualRuntime()
    const file = newFile()
    const table = { name: 't', columns: [] }
    const first = await createSqliteStore({ file, clock })
    await first.subscriptions.register({ name: 's', table, start: 0, partitions: undefined })
    const claim = (owner: string) => ({ subscription: 's', partition: 0, owner, leaseMs: 10_000 })
    await first.subscriptions.claim(claim('one'))
    await using second = await createSqliteStore({ file, clock })
    expect(await second.subscriptions.claim(claim('two'))).toMatchObject({ outcome: 'owned' })
    await first.close()
    expect(await second.subscriptions.claim(claim('two'))).toMatchObject({ outcome: 'claimed', lease: { epoch: 2 } })
  })
})

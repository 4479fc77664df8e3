import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Client } from 'pg'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { createDatabase, describeNewest } from '../../test/postgres/databases.ts'
import { run, start } from '../run.ts'
import { brokenPromises, type Facts } from './audit.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-examples-'))
afterAll(() => rmSync(folder, { recursive: true }))

const small = ['--events', '3000', '--accounts', '200', '--json']
/** Takes long enough to be disturbed. */
const medium = ['--events', '20000', '--accounts', '1000']

describe('the bank', () => {
  test('keeps its promises, and ends alike for the same seed', async () => {
    const facts: BankResult[] = []
    for (const name of ['a.db', 'b.db']) {
      const { code, stdout } = await run('bank/main.ts', [...small, '--seed', '3', '--file', join(folder, name)])
      expect(code).toBe(0)
      facts.push(JSON.parse(stdout) as BankResult)
    }
    const [first, second] = facts as [BankResult, BankResult]
    expect(first).toMatchObject({ ok: true, broken: [], engine: { endedBy: 'SIGKILL' } })
    expect(first.audit.heldLanes.length).toBeGreaterThan(10)
    expect(timeless(second)).toEqual(timeless(first))
  })

  test('is another one for another seed, and leaves its file for SQL', async () => {
    const file = join(folder, 'a.db')
    const before = readBalances(file)
    const { code, stdout } = await run('bank/main.ts', [...small, '--seed', '4', '--file', file])
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, seed: 4, audit: { rows: 200 } })
    expect(readBalances(file)).toHaveLength(200)
    expect(readBalances(file)).not.toEqual(before)
  })

  test('ends with a table on stdout for people', async () => {
    const file = join(folder, 'table.db')
    const { code, stdout, stderr } = await run('bank/main.ts', [
      '--events',
      '2000',
      '--accounts',
      '100',
      '--file',
      file,
    ])
    expect(code).toBe(0)
    expect(stdout).toMatch(/appended +2,000 events/)
    expect(stdout).toContain('Nothing was lost.')
    expect(stderr).toMatch(/was killed with SIGKILL when \d+ events were processed/)
    using db = new DatabaseSync(file, { readOnly: true })
    const answers = queriesIn(stdout).map((query) => db.prepare(query).all().length)
    expect(answers).toEqual([5, 25])
  })

  test.each([
    [['--events', 'many'], '--events is "many"'],
    [['--events', '100'], '--events is "100"'],
    [['--colour', 'red'], "Unknown option '--colour'"],
    [['--file', folder], 'is not a file'],
    [['--schema', 'bank'], 'set DATABASE_URL'],
    [['--schema', 'bank', '--file', 'bank.db'], 'give one of them'],
  ])('refuses %j with exit code 2', async (args, why) => {
    const { code, stdout, stderr } = await run('bank/main.ts', args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(why)
    expect(stderr).not.toContain('    at ')
  })

  test('does not replace a file that is not its own', async () => {
    const text = join(folder, 'letter.txt')
    writeFileSync(text, 'Dear Ada, this is no database at all.')
    const other = join(folder, 'other.db')
    const db = new DatabaseSync(other)
    db.exec('CREATE TABLE precious (thing TEXT)')
    db.close()
    for (const file of [text, other]) {
      const before = readFileSync(file)
      const { code, stderr } = await run('bank/main.ts', ['--file', file])
      expect(code).toBe(2)
      expect(stderr).toContain('Nothing was changed')
      expect(readFileSync(file)).toEqual(before)
    }
  })

  test('leaves no process behind when it is interrupted', async () => {
    const bank = start('bank/main.ts', [...medium, '--file', join(folder, 'interrupted.db')])
    expect(await interrupt(bank, 1)).toEqual({ code: 130, stdout: '', left: [] })
  })

  test('tells every broken promise', async () => {
    const file = join(folder, 'promises.db')
    const { stdout } = await run('bank/main.ts', ['--events', '1000', '--accounts', '50', '--json', '--file', file])
    const { planned, door, engine, audit, ...rest } = JSON.parse(stdout) as BankResult
    const facts: Facts = { ...rest, planned, door, engine, audit }
    expect(brokenPromises(facts)).toEqual([])
    const { verification } = audit
    const { counts } = verification
    const broken: [string, Partial<Facts>][] = [
      ['appended', { door: { ...door, appended: door.appended - 1 } }],
      ['absorbed', { door: { ...door, absorbed: 0 } }],
      ['refused', { door: { ...door, refused: {} } }],
      ['mistakes', { door: { ...door, mistakes: ['a note of 2 MB was accepted'] } }],
      ['not killed', { engine: { ...engine, endedBy: 'exit 0' } }],
      ['middle', { engine: { ...engine, done: 0 } }],
      ['middle', { engine: { ...engine, done: engine.appended } }],
      ['owned nothing', { engine: { ...engine, lost: [] } }],
      ['before where they were left', { engine: { ...engine, lost: [{ partition: 0, told: 8, takenUpAt: 7 }] } }],
      ['taken up', { engine: { ...engine, resumedAt: 0 } }],
      ['taken up', { engine: { ...engine, processes: 2, resumedAt: engine.done - 1 } }],
      ['got no partition', { engine: { ...engine, joinedWith: 0 } }],
      ['after the kill', { engine: { ...engine, recoveredInMs: Number.NaN } }],
      ['lost', { audit: { ...audit, wrongEvents: ['account-00001 has 3 events, not 4'] } }],
      ['rows', { audit: { ...audit, wrongRows: ['account-00001 has no row'] } }],
      ['wrong events are held', { audit: { ...audit, wrongLetters: ['account-00001 holds nothing'] } }],
      ['held are 0 lanes', { audit: { ...audit, parked: 0 } }],
      ['verify found', { audit: { ...audit, verification: { ...verification, ok: false } } }],
      ['through with 7', { audit: { ...audit, verification: { ...verification, events: 7 } } }],
      ["don't add up", { audit: { ...audit, verification: { ...verification, counts: { ...counts, applied: 1 } } } }],
      ['twice', { audit: { ...audit, verification: { ...verification, counts: { ...counts, duplicate: 1 } } } }],
    ]
    for (const [what, change] of broken) expect(brokenPromises({ ...facts, ...change }).join('\n')).toContain(what)
  })
})

describeNewest('the bank', (server) => {
  test('keeps its promises with two engines, one of which takes over from the other, and ends as it does on SQLite', async () => {
    await using database = await createDatabase(server)
    const env = { DATABASE_URL: database.url }
    const runs = [
      await run('bank/main.ts', [...small, '--seed', '3'], env),
      // The schema of the first run is replaced.
      await run('bank/main.ts', [...small, '--seed', '3'], env),
      // A file wins over the variable.
      await run('bank/main.ts', [...small, '--seed', '3', '--file', join(folder, 'same.db')], env),
    ]
    expect(runs.map(({ code }) => code)).toEqual([0, 0, 0])
    const [first, second, file] = runs.map(({ stdout }) => JSON.parse(stdout) as BankResult) as [
      BankResult,
      BankResult,
      BankResult,
    ]
    expect(first).toMatchObject({ ok: true, broken: [], place: { kind: 'postgres', schema: 'holdfast_bank' } })
    expect(first.engine).toMatchObject({ processes: 2, endedBy: 'SIGKILL', joinedWith: 2 })
    expect(first.engine.lost).toHaveLength(2)
    // Seen to be dead, and not only when its lease ran out.
    expect(first.engine.recoveredInMs).toBeLessThan(10_000)
    expect(file.place.kind).toBe('sqlite')
    expect(timeless(second)).toEqual(timeless(first))
    expect(timeless(file)).toEqual(timeless(first))
  }, 60_000)

  test('ends with a table on stdout for people, and with queries that work', async () => {
    await using database = await createDatabase(server)
    const args = ['--events', '2000', '--accounts', '100', '--schema', 'another']
    const { code, stdout, stderr } = await run('bank/main.ts', args, { DATABASE_URL: database.url })
    expect(code).toBe(0)
    expect(stderr).toMatch(/was killed with SIGKILL when \d+ events were processed/)
    expect(stdout).toContain('one of 2 processes')
    expect(stdout).toContain('Nothing was lost.')
    expect(stdout).not.toContain(new URL(database.url).password)
    const answers = await ask(database.url, ...queriesIn(stdout))
    expect(answers.map(({ length }) => length)).toEqual([5, 25, 4])
  })

  test('does not replace a schema that is not its own', async () => {
    await using database = await createDatabase(server)
    const env = { DATABASE_URL: database.url }
    await ask(database.url, 'CREATE SCHEMA precious', 'CREATE TABLE precious.thing AS SELECT 1 AS one')
    for (const schema of ['precious', 'public']) {
      const { code, stdout, stderr } = await run('bank/main.ts', ['--schema', schema], env)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toBe(
        `The schema ${schema} was not made by this program. Nothing was changed; give another --schema.\n`,
      )
    }
    expect(await ask(database.url, 'SELECT one FROM precious.thing')).toEqual([[{ one: 1 }]])
  })

  test('does not replace a schema in use, and leaves no process behind when it is interrupted', async () => {
    await using database = await createDatabase(server)
    const env = { DATABASE_URL: database.url }
    const bank = start('bank/main.ts', medium, env)
    await vi.waitFor(() => expect(bank.output.stderr).toContain('appended'), { timeout: 25_000, interval: 20 })
    bank.process.kill('SIGSTOP')
    const { code, stderr } = await run('bank/main.ts', medium, env)
    bank.process.kill('SIGCONT')
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('is in use by another run') })
    expect(await interrupt(bank, 2)).toEqual({ code: 130, stdout: '', left: [] })
  }, 60_000)

  test.each([
    ['a URL of something else', () => 'https://example.com', 2, 'DATABASE_URL is not the URL of a PostgreSQL'],
    ['no URL', () => 'bank', 2, 'DATABASE_URL is not the URL of a PostgreSQL'],
    [
      'a server that is not there',
      () => 'postgres://nobody:secret@127.0.0.1:1/bank',
      1,
      "127.0.0.1:1/bank can't be used",
    ],
    // A server that asks for no password hasn't the database either.
    ['a wrong password', () => nowhere('secret'), 1, "/nothing can't be used"],
    ['no such database', () => nowhere(), 1, '"nothing" does not exist'],
  ])('tells of %s in a sentence', async (_, url, expected, why) => {
    const { code, stdout, stderr } = await run('bank/main.ts', [], { DATABASE_URL: url() })
    expect({ code, stdout }).toEqual({ code: expected, stdout: '' })
    expect(stderr).toContain(why)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
    expect(stderr).not.toContain('secret')
  })

  function nowhere(password?: string): string {
    const url = new URL(server.url)
    url.pathname = '/nothing'
    if (password) url.password = password
    return url.href
  }
})

async function ask(url: string, ...queries: string[]): Promise<unknown[][]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const answers: unknown[][] = []
    for (const query of queries) answers.push((await client.query(query)).rows)
    return answers
  } finally {
    await client.end()
  }
}

type BankResult = Facts & { readonly ok: boolean; readonly broken: readonly string[] }

function timeless({ audit, door }: BankResult): object {
  const { rowsHash, heldLanes, example, verification } = audit
  return { rowsHash, heldLanes, example, counts: verification.counts, refused: door.refused, absorbed: door.absorbed }
}

function readBalances(file: string): unknown[] {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return db.prepare('SELECT key, owner, balance FROM account_balances ORDER BY key').all()
  } finally {
    db.close()
  }
}

/** With Ctrl-C, when its engines work: how it ended, and which of their processes are still there. */
async function interrupt(bank: ReturnType<typeof start>, engines: number) {
  const pids = () =>
    Array.from(bank.output.stderr.matchAll(/an engine runs in process (\d+)/g), ([, pid]) => Number(pid))
  await vi.waitFor(() => expect(pids().length).toBeGreaterThanOrEqual(engines), { timeout: 25_000, interval: 20 })
  bank.process.kill('SIGINT')
  const { code, stdout } = await bank.ended
  await vi.waitUntil(() => !pids().some(isAlive), { timeout: 5_000 }).catch(() => undefined)
  return { code, stdout, left: pids().filter(isAlive) }
}

/** The statements that the report ends with. */
function queriesIn(stdout: string): string[] {
  return Array.from(stdout.matchAll(/^ +(SELECT .*);$/gm), ([, query]) => query as string)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

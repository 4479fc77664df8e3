import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { run, start } from '../run.ts'
import { brokenPromises, type Facts } from './audit.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-examples-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('the bank', () => {
  const small = ['--events', '5000', '--accounts', '200', '--json']

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
    const args = ['--events', '2000', '--accounts', '100', '--file', join(folder, 'table.db')]
    const { code, stdout, stderr } = await run('bank/main.ts', args)
    expect(code).toBe(0)
    expect(stdout).toMatch(/appended +2,000 events/)
    expect(stdout).toContain('Nothing was lost.')
    expect(stderr).toMatch(/the engine was killed with -9 at \d+/)
  })

  test.each([
    [['--events', 'many'], '--events is "many"'],
    [['--events', '100'], '--events is "100"'],
    [['--colour', 'red'], "Unknown option '--colour'"],
    [['--file', folder], 'is not a file'],
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
    const bank = start('bank/main.ts', ['--file', join(folder, 'interrupted.db')])
    const pid = await vi.waitFor(() => engineOf(bank.output.stderr), { timeout: 20_000, interval: 20 })
    bank.process.kill('SIGINT')
    expect(await bank.ended).toMatchObject({ code: 130, stdout: '' })
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 5_000 })
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
      ['mistakes', { door: { ...door, mistakes: ['a note of 2 MB was let in'] } }],
      ['not killed', { engine: { ...engine, endedBy: 'exit 0' } }],
      ['middle', { engine: { ...engine, position: 0 } }],
      ['middle', { engine: { ...engine, position: engine.head } }],
      ['taken up', { engine: { ...engine, resumedAt: 0 } }],
      ['after the kill', { engine: { ...engine, recoveredInMs: Number.NaN } }],
      ['lost', { audit: { ...audit, wrongEvents: ['account-00001 has 3 events, not 4'] } }],
      ['rows', { audit: { ...audit, wrongRows: ['account-00001 has no row'] } }],
      ['wrong events are held', { audit: { ...audit, wrongLetters: ['account-00001 holds nothing'] } }],
      ['held are 0 lanes', { audit: { ...audit, parked: 0 } }],
      ['verify found', { audit: { ...audit, verification: { ...verification, ok: false } } }],
      ['is at 7', { audit: { ...audit, verification: { ...verification, position: 7 } } }],
      ["don't add up", { audit: { ...audit, verification: { ...verification, counts: { ...counts, applied: 1 } } } }],
      ['twice', { audit: { ...audit, verification: { ...verification, counts: { ...counts, duplicate: 1 } } } }],
    ]
    for (const [what, change] of broken) expect(brokenPromises({ ...facts, ...change }).join('\n')).toContain(what)
  })
})

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

function engineOf(stderr: string): number {
  const [, pid] = /the engine works as process (\d+)/.exec(stderr) ?? []
  if (!pid) throw new Error('No engine yet.')
  return Number(pid)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

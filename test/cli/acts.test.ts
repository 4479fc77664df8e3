import { DatabaseSync } from 'node:sqlite'
import { createBreaker } from 'holdfast'
import { beforeAll, afterAll, describe, expect, it, vi } from 'vitest'
import { createPlace, type Place } from './place.ts'

vi.setConfig({ testTimeout: 90_000 })

const why = ['--reason', 'a test']
const append = (place: Place, key: string, type: string, amount: number) =>
  place.json(['events', 'append', key, type, '--data', JSON.stringify({ amount }), ...why])

let place: Place
beforeAll(async () => {
  place = createPlace()
  await place.json(['migrate'])
  await append(place, 'a', 'Credited', 4711)
  await append(place, 'b', 'Debited', 99)
  await append(place, 'b', 'Credited', 1)
  await place.run(['start', '--drain'])
})
afterAll(() => place[Symbol.dispose]())

const lastDeed = async () => (await place.json<{ entries: object[] }>(['audit', 'list', '--limit', '1'])).entries[0]
const deeds = async () => (await place.json<{ entries: object[] }>(['audit', 'list', '--limit', '1000'])).entries.length

describe('holdfast subscriptions', () => {
  it('pauses and resumes, with a reason, and it is in the audit', async () => {
    const stateOf = async () => {
      const { subscriptions } = await place.json<{ subscriptions: { name: string }[] }>(['subscriptions', 'list'])
      return subscriptions.find(({ name }) => name === 'balances')
    }
    expect(await place.json(['subscriptions', 'pause', 'balances', '--dry-run', ...why])).toMatchObject({
      code: 0,
      dryRun: true,
    })
    expect(await stateOf()).toMatchObject({ state: 'idle' })
    const pause = ['subs', 'pause', 'balances', '--as', 'grace', '--reason']
    expect(await place.json([...pause, 'closed\u001b[2J'])).toMatchObject({
      code: 2,
      error: { code: 'OPTION_INVALID' },
    })
    const paused = await place.call([...pause, 'the books are closed'])
    expect(paused).toMatchObject({ code: 0, stdout: 'balances is paused in all processes.\n' })
    expect(await stateOf()).toMatchObject({ state: 'paused', pause: { reason: 'the books are closed' } })
    expect(await lastDeed()).toMatchObject({ by: 'grace', target: 'balances' })
    const db = new DatabaseSync(place.file)
    db.prepare('UPDATE holdfast_subscriptions SET pause_reason = ?').run('the books\u001b[2J are closed')
    db.close()
    for (const args of [['status'], ['doctor'], ['subscriptions', 'list']]) {
      const { stdout } = await place.call(args)
      expect(stdout).toContain('the books\\x1b[2J are closed')
      expect(stdout).not.toContain('\u001b')
    }
    expect(await place.json(['subscriptions', 'resume', 'balances', ...why])).toMatchObject({
      code: 0,
      wasPaused: true,
    })
    expect(await stateOf()).toMatchObject({ state: 'idle' })
  })

  it('does nothing to what is not there, or without a reason', async () => {
    const before = await deeds()
    for (const act of ['pause', 'resume']) {
      for (const name of ['nobody', '', '../../etc', "'; DROP TABLE holdfast_events; --", '\u001b[2J'])
        expect(await place.json(['subscriptions', act, name, ...why])).toMatchObject({
          code: 2,
          error: { code: 'NOT_FOUND' },
        })
      expect(await place.json(['subscriptions', act, 'balances'])).toMatchObject({ code: 2, error: { code: 'USAGE' } })
    }
    expect(await place.json(['subscriptions', 'lag', 'nobody'])).toMatchObject({ code: 2 })
    expect(await deeds()).toBe(before)
  })

  it('tells how far each partition is', async () => {
    expect(await place.json(['subscriptions', 'lag', 'balances'])).toMatchObject({
      code: 0,
      head: 3,
      subscriptions: [{ name: 'balances', partitions: [{ partition: 0, position: 3, events: 0, owner: null }] }],
    })
  })

  it('still shows what the configuration does not name any more', async () => {
    const env = { HOLDFAST_STORE: place.file }
    using other = createPlace({ 'holdfast.config.ts': 'export default {}' })
    const { subscriptions } = await other.json<{ subscriptions: object[] }>(['subscriptions', 'list'], { env })
    expect(subscriptions).toMatchObject([
      { name: 'balances', state: 'orphan', held: { lanes: 1, letters: 2 } },
      { name: 'mails', state: 'orphan' },
    ])
    expect(await other.json(['dlq', 'list', 'balances'], { env })).toMatchObject({
      code: 0,
      letters: [{ lane: 'b' }, { lane: 'b' }],
    })
  })
})

describe('holdfast projections', () => {
  it('shows the row of a key, now and before', async () => {
    expect(await place.json(['projections', 'list'])).toMatchObject({
      projections: [{ name: 'balances', table: 'balances', heldLanes: 1 }],
    })
    const { stdout } = await place.call(['projections', 'get', 'balances', 'a'])
    expect(stdout).toBe('a version 1\n{ balance: number }\n')
    expect(await place.json(['projections', 'get', 'balances', 'a', '--reveal', ...why])).toMatchObject({
      data: { balance: 4711 },
    })
    expect(await lastDeed()).toMatchObject({ act: 'reveal', target: 'balances/a' })
    expect(await place.json(['projections', 'get', 'balances', 'a', '--at-version', '1'])).toMatchObject({
      version: 1,
      shape: { balance: 'number' },
    })
    expect(await place.json(['projections', 'get', 'balances', 'a', '--before', '1'])).toMatchObject({
      code: 2,
      error: { code: 'NOT_FOUND' },
    })
    const { steps } = await place.json<{ steps: object[] }>(['projections', 'history', 'balances', 'b'])
    expect(steps).toMatchObject([
      { position: 2, type: 'Debited', outcome: 'held' },
      { position: 3, type: 'Credited', outcome: 'held' },
    ])
    for (const args of [
      ['mails', 'a'],
      ['nobody', 'a'],
      ['balances', 'nobody'],
      ['balances', 'a', '--at-version', '0'],
      ['balances', 'a', '--at-version', '1', '--before', '2'],
    ])
      expect(await place.json(['projections', 'get', ...args])).toMatchObject({ code: 2 })
  })

  it('is reset only by who means it', async () => {
    const before = await deeds()
    const reset = ['projections', 'reset', 'balances']
    expect(await place.json([...reset, '--dry-run'])).toMatchObject({ code: 0, dryRun: true, applied: 1, letters: 2 })
    expect(await place.json([...reset, ...why])).toMatchObject({ code: 2, error: { code: 'NOT_CONFIRMED' } })
    expect(await place.json([...reset, '--yes'])).toMatchObject({ code: 2, error: { code: 'USAGE' } })
    const other = 'f'.repeat(12)
    expect(await place.json([...reset, ...why, '--yes', '--expect', other])).toMatchObject({
      code: 1,
      error: { code: 'SELECTION_CHANGED' },
      expected: other,
    })
    // How many there are is not which there are.
    expect(await place.json([...reset, ...why, '--yes', '--expect', '2'])).toMatchObject({ code: 2 })
    expect(await place.json(['projections', 'reset', 'mails', ...why, '--yes'])).toMatchObject({ code: 2 })
    expect(await place.json(['projections', 'reset', 'nobody', ...why, '--yes'])).toMatchObject({ code: 2 })
    const mistyped = await place.call([...reset, ...why], { typed: ['balance'] })
    expect(mistyped).toMatchObject({ code: 2, stdout: '' })
    expect(mistyped.stderr).toContain('2 held letters will be removed')
    expect(mistyped.stderr).toContain('Type balances to confirm: ')
    expect((await place.call([...reset, ...why, '--no-input'], { typed: ['balances'] })).code).toBe(2)
    const meanwhile = () => {
      const db = new DatabaseSync(place.file)
      // As many lanes as before, one of them at another head.
      db.exec("UPDATE holdfast_lanes SET head_position = head_position + 1 WHERE subscription = 'balances'")
      db.close()
      return 'balances'
    }
    const changed = await place.call([...reset, ...why], { typed: [meanwhile] })
    expect(changed).toMatchObject({ code: 1, stderr: expect.stringContaining('The selection changed') })
    expect(await deeds()).toBe(before)
    expect((await place.call([...reset, ...why], { typed: ['balances'] })).code).toBe(0)
    expect(await lastDeed()).toMatchObject({ by: 'ada', target: 'balances', reason: 'a test' })
    expect(await place.json(['subscriptions', 'lag', 'balances'])).toMatchObject({
      subscriptions: [{ partitions: [{ position: 0, events: 3 }] }],
    })
    await place.run(['start', '--drain'])
    expect(await place.json(['verify', 'balances'])).toMatchObject({
      code: 0,
      subscriptions: [{ counts: { applied: 1, held: 2 } }],
    })
  })
})

describe('holdfast dlq show', () => {
  it('has the first and the newest attempts, with how many there were between them', async () => {
    const db = new DatabaseSync(place.file)
    const { attempts } = db.prepare('SELECT attempts FROM holdfast_letters WHERE position = 2').get() as {
      attempts: string
    }
    const [attempt] = JSON.parse(attempts) as object[]
    const kept = JSON.stringify(Array.from({ length: 25 }, () => attempt))
    db.prepare('UPDATE holdfast_letters SET attempts = ?, attempts_total = 201 WHERE position = 2').run(kept)
    db.close()
    const { stdout } = await place.call(['dlq', 'show', 'balances', '2'])
    const numbers = Array.from(stdout.matchAll(/ (\d+)\. 2|(… \d+ more …)/g), ([, number, more]) => number ?? more)
    expect(numbers).toEqual([
      '1',
      '2',
      '3',
      '4',
      '5',
      '… 176 more …',
      ...Array.from({ length: 20 }, (_, i) => String(182 + i)),
    ])
    const { letter } = await place.json<{ letter: { history: object[] } }>(['dlq', 'show', 'balances', '2'])
    expect(letter).toMatchObject({ attempts: 201, attemptsTotal: 201, history: { length: 25 } })
    expect(await place.json(['dlq', 'list', 'balances'])).toMatchObject({ letters: [{ attempts: 201 }, {}] })
  })
})

describe('holdfast breakers', () => {
  it('are listed, isolated and reset', async () => {
    expect(await place.json(['breakers', 'list'])).toMatchObject({ code: 0, breakers: [] })
    {
      await using store = await place.open()
      const breaker = createBreaker({ store, name: 'mails/acme', opens: { failures: 1 } })
      await breaker.call(() => Promise.reject(new Error('down'))).catch(() => undefined)
      await breaker.close()
    }
    expect(await place.json(['breakers', 'list', '--open'])).toMatchObject({
      breakers: [{ name: 'mails/acme', state: 'open' }],
    })
    expect(await place.json(['breakers', 'isolate', 'mails/acme', '--dry-run', ...why])).toMatchObject({
      code: 0,
      before: 'open',
    })
    expect(await place.json(['breakers', 'isolate', 'mails/acme', ...why])).toMatchObject({
      code: 0,
      state: 'isolated',
    })
    expect(await lastDeed()).toMatchObject({
      act: 'breaker.isolate',
      target: 'mails/acme',
      by: 'ada',
      reason: 'a test',
    })
    expect(await place.json(['breakers', 'list'])).toMatchObject({
      breakers: [{ state: 'isolated', by: 'ada', reason: 'a test' }],
    })
    expect((await place.call(['doctor'])).stdout).toContain('Next: holdfast breakers reset mails/acme')
    expect(await place.json(['breakers', 'reset', 'mails/acme', ...why])).toMatchObject({ code: 0, before: 'isolated' })
    expect(await place.json(['breakers', 'list'])).toMatchObject({ breakers: [{ state: 'closed' }] })
    expect(await lastDeed()).toMatchObject({
      act: 'breaker.reset',
      target: 'mails/acme',
      by: 'ada',
      reason: 'a test',
    })
  })

  it('that nobody has are not isolated by a slip', async () => {
    const before = await deeds()
    for (const name of ['mails/acne', '', '\u001b[2J', 'x'.repeat(501)])
      for (const act of ['isolate', 'reset'])
        expect(await place.json(['breakers', act, name, ...why])).toMatchObject({ code: 2 })
    expect((await place.call(['breakers', 'isolate', 'mails/acne', ...why])).stderr).toContain(
      'Did you mean mails/acme?',
    )
    expect(await deeds()).toBe(before)
    expect(await place.json(['breakers', 'isolate', 'mails/new', '--new', ...why])).toMatchObject({ code: 0 })
  })
})

describe('holdfast audit', () => {
  it('shows that it is whole, and where it is not', async () => {
    const { head, ...whole } = await place.json<{ head: { number: number; hash: string } }>(['audit', 'verify'])
    expect(whole).toMatchObject({ code: 0, intact: true, flaw: null })
    const noted = `${head.number}:${head.hash}`
    expect(await place.json(['audit', 'verify', '--head', noted])).toMatchObject({ code: 0, intact: true })
    for (const wrong of ['', 'x', '5', `0:${'g'.repeat(64)}`, `-1:${head.hash}`])
      expect(await place.json(['audit', 'verify', '--head', wrong])).toMatchObject({
        code: 2,
        error: { code: 'USAGE' },
      })
    const { entries } = await place.json<{ entries: { number: number }[] }>([
      'audit',
      'list',
      '--after',
      '2',
      '--limit',
      '2',
    ])
    expect(entries.map(({ number }) => number)).toEqual([3, 4])
    const db = new DatabaseSync(place.file)
    db.exec('DROP TRIGGER holdfast_audit_no_update; DROP TRIGGER holdfast_audit_no_delete')
    db.exec(`DELETE FROM holdfast_audit WHERE number = ${head.number}`)
    expect(await place.json(['audit', 'verify', '--head', noted])).toMatchObject({ code: 3, intact: false })
    expect(await place.json(['audit', 'verify'])).toMatchObject({ code: 0, intact: true })
    db.exec("UPDATE holdfast_audit SET reason = 'another' WHERE number = 2")
    const broken = await place.call(['audit', 'verify'])
    expect(broken).toMatchObject({ code: 3, stdout: expect.stringContaining('broken entry 2 was changed') })
    db.close()
  })
})

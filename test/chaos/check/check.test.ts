import { describe, expect, it } from 'vitest'
import { AppendRecord } from '../record.ts'
import { Tally } from '../tally.ts'
import { checkEffects } from './effects.ts'
import { expectLanes } from './expected.ts'
import { checkLedger } from './ledger.ts'
import { checkLetters } from './letters.ts'
import { checkLog } from './log.ts'
import type { Effect, LedgerRow, Letter, LoggedEvent } from './snapshot.ts'

const event = (key: string, n: number, amount: number, position: number): LoggedEvent => ({
  position,
  id: `${key}-${n}`,
  key,
  version: n,
  n,
  amount,
})

// Of `sick`, the second event is poison.
const log = [
  event('well', 1, 5, 1),
  event('sick', 1, 7, 2),
  event('well', 2, 6, 3),
  event('sick', 2, -1, 4),
  event('sick', 3, 9, 5),
  event('well', 3, 1, 6),
]
const lanes = expectLanes(log)
const effect = (key: string, version: number): Effect => ({ id: `${key}-${version}`, key, version })
const effects = [effect('well', 1), effect('sick', 1), effect('well', 2), effect('well', 3)]
const letter = (key: string, version: number, status: string, attempts: number): Letter => ({
  subscription: 'effects',
  id: `${key}-${version}`,
  key,
  version,
  status,
  attempts,
})
const letters = [letter('sick', 2, 'parked', 1), letter('sick', 3, 'queued', 0)]
const row = (key: string, count: number, balance: number, trail: number): LedgerRow => ({
  key,
  version: count,
  balance,
  data: { balance, count, trail },
})
const rows = [row('well', 3, 12, (1 * 31 + 2) * 31 + 3), row('sick', 1, 7, 1)]

/** What a check finds, without its words. */
function found(check: (tally: Tally) => void) {
  const tally = new Tally()
  check(tally)
  const counts = Object.fromEntries([...tally.counts].filter(([, count]) => count !== 0))
  return { ...counts, problems: tally.problems.length }
}

describe('the effects', () => {
  const of = (list: readonly Effect[], held = new Set<string>()) =>
    found((tally) => checkEffects(list, held, lanes, tally))

  it('are right when each event that is not held left one, in order', () => {
    expect(of(effects)).toEqual({ problems: 0 })
  })
  it('show what was lost', () => {
    expect(of(effects.slice(0, -1))).toEqual({ lost: 1, problems: 1 })
    expect(of(effects.toSpliced(2, 1))).toEqual({ lost: 1, problems: 1 })
    expect(of(effects.toSpliced(2, 1), new Set(['well-2']))).toEqual({ problems: 0 })
  })
  it('show what was applied twice', () => {
    expect(of([...effects, effect('well', 3)])).toEqual({ twice: 1, problems: 1 })
    expect(of([...effects, effect('well', 2)])).toEqual({ twice: 1, problems: 1 })
  })
  it('show what was applied out of order', () => {
    expect(of([effect('well', 2), effect('well', 1), effect('well', 3), effect('sick', 1)])).toEqual({
      inverted: 1,
      problems: 1,
    })
  })
  it('show what should have been held, and what nobody wrote', () => {
    expect(of([...effects, effect('sick', 3)])).toEqual({ problems: 1 })
    expect(of([...effects, effect('strange', 1)])).toEqual({ problems: 1 })
  })
})

describe('the ledger', () => {
  const of = (list: readonly LedgerRow[]) => found((tally) => checkLedger(list, new Set(), lanes, tally))

  it('is right when each row is the fold of its events', () => {
    expect(of(rows)).toEqual({ problems: 0 })
  })
  it('shows what was lost, applied twice, and applied out of order', () => {
    expect(of(rows.slice(0, 1))).toEqual({ lost: 1, problems: 1 })
    expect(of([row('well', 4, 13, 0), rows[1] as LedgerRow])).toEqual({ twice: 1, problems: 1 })
    expect(of([row('well', 3, 12, (1 * 31 + 3) * 31 + 2), rows[1] as LedgerRow])).toEqual({ inverted: 1, problems: 1 })
  })
})

describe('the letters', () => {
  const of = (list: readonly Letter[]) => found((tally) => checkLetters('effects', list, lanes, tally))

  it('are right when poison is parked and the rest behind it queues', () => {
    expect(of(letters)).toEqual({ problems: 0 })
  })
  it('show what an outage held', () => {
    expect(of([letter('well', 2, 'parked', 1), ...letters])).toEqual({ outageLetters: 1, problems: 1 })
    expect(of([letter('sick', 1, 'parked', 1), ...letters])).toEqual({ outageLetters: 1, problems: 1 })
  })
  it('show what is neither applied nor held', () => {
    expect(of(letters.slice(0, 1))).toEqual({ lost: 1, problems: 1 })
  })
  it('show an attempt that an outage used up', () => {
    expect(of([letter('sick', 2, 'parked', 2), letter('sick', 3, 'queued', 0)])).toEqual({ problems: 1 })
  })
})

describe('the log', () => {
  const record = new AppendRecord()
  const batch = { inTransaction: false }
  record.acknowledge({ ...batch, key: 'well', first: 1, amounts: [5, 6] })
  record.acknowledge({ key: 'well', first: 3, amounts: [1], inTransaction: true })
  record.acknowledge({ ...batch, key: 'sick', first: 1, amounts: [7] })
  record.giveUp({ key: 'sick', first: 2, amounts: [-1, 9], inTransaction: true })
  const business = [{ id: 'well-3' }, { id: 'sick-2' }]
  const of = (events: readonly LoggedEvent[], made = business) =>
    found((tally) => checkLog({ events, business: made }, record.keys, tally))

  it('is right with and without what had no answer', () => {
    expect(record.problems).toEqual([])
    expect(of(log)).toEqual({ problems: 0 })
    const without = log.filter(({ key, n }) => key === 'well' || n === 1)
    expect(of(without, business.slice(0, 1))).toEqual({ problems: 0 })
  })
  it('shows what was acknowledged and is not there', () => {
    expect(of(log.slice(0, -1))).toMatchObject({ lost: 1 })
  })
  it('shows half of an append', () => {
    expect(of(log.toSpliced(4, 1))).toEqual({ problems: 1 })
  })
  it('shows an append without what else its transaction wrote, and the other way round', () => {
    expect(of(log, business.slice(1))).toEqual({ problems: 1 })
    expect(of(log, [...business, { id: 'gone-1' }])).toEqual({ problems: 1 })
  })
  it('shows what was rolled back, and what nobody wrote', () => {
    expect(of(log.with(0, event('well', 1, 50, 1)))).toEqual({ problems: 1 })
    expect(of([...log, event('strange', 1, 1, 7)])).toEqual({ problems: 1 })
  })
})

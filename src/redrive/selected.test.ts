import { describe, expect, it } from 'vitest'
import { freeze, type SelectedHead, selectedOf } from './selected.ts'

const head = (lane: string, more: Partial<SelectedHead> = {}): SelectedHead => ({
  lane,
  partition: 0,
  position: 1,
  attempts: 1,
  revision: 0,
  isBusy: false,
  ...more,
})

describe('the digest of a selection', () => {
  const seen = selectedOf([head('a'), head('b', { position: 2 })]).digest

  it('is the same for the same lanes at the same heads, whatever other redrives have', () => {
    expect(selectedOf([head('a'), head('b', { position: 2 })])).toEqual({ lanes: 2, busy: 0, digest: seen })
    const busy = head('c', { position: 3, isBusy: true })
    expect(selectedOf([head('a'), head('b', { position: 2 }), busy])).toEqual({ lanes: 2, busy: 1, digest: seen })
  })

  it.for([
    ['another lane', head('c', { position: 2 })],
    ['another head', head('b', { position: 3 })],
    ['another partition', head('b', { position: 2, partition: 1 })],
    ['another attempt', head('b', { position: 2, attempts: 2 })],
    ['another revision', head('b', { position: 2, revision: 1 })],
    ['a lane that another redrive has', head('b', { position: 2, isBusy: true })],
  ] as const)('is another one for %s', ([, other]) => {
    expect(selectedOf([head('a'), other]).digest).not.toBe(seen)
  })

  it('does not take two lanes for one, whatever is in their names', () => {
    const one = selectedOf([head('a\n[0,"b",1,1,0]')]).digest
    expect(selectedOf([head('a'), head('b')]).digest).not.toBe(one)
    expect(selectedOf([head('a"')]).digest).not.toBe(selectedOf([head('a\\"')]).digest)
  })
})

describe('a set of whole lanes', () => {
  const heads = [head('a', { letters: 3, until: 7 }), head('b', { position: 2, letters: 1, until: 2 })]
  const freezeAll = (given: readonly SelectedHead[]) => freeze(given, { expected: undefined, stages: [], through: 9 })

  it('counts its letters, and has a different digest with another letter', () => {
    const { digest, ...seen } = selectedOf(heads)
    expect(seen).toEqual({ lanes: 2, busy: 0, letters: 4, through: 7 })
    expect(freezeAll(heads)).toMatchObject({ details: { lanes: 2, letters: 4 } })
    for (const more of [{ letters: 4 }, { until: 8 }])
      expect(selectedOf([{ ...(heads[0] as SelectedHead), ...more }, heads[1] as SelectedHead]).digest).not.toBe(digest)
  })

  it('excludes a lane whose head is after the last position', () => {
    const later = head('c', { position: 8, letters: 0, until: 0 })
    expect(selectedOf([...heads, later])).toEqual(selectedOf(heads))
    expect(freezeAll([later])).toEqual({ outcome: 'nothing', busy: 0 })
  })
})

describe('a set that is frozen', () => {
  const heads = [head('a'), head('b', { partition: 2, position: 2 }), head('c', { isBusy: true, position: 3 })]

  it('has the free lanes, over how many partitions they are, and how many may be begun', () => {
    const lanes = heads.slice(0, 2)
    expect(freeze(heads, { expected: undefined, stages: [] })).toEqual({
      outcome: 'frozen',
      lanes,
      busy: 1,
      spread: 2,
      admitted: 2,
      details: { lanes: 2 },
    })
    expect(freeze(heads, { expected: selectedOf(heads).digest, stages: [1, 3] })).toMatchObject({ admitted: 1 })
    expect(freeze(heads, { expected: undefined, stages: [9] })).toMatchObject({ admitted: 2 })
  })

  it('is refused where it changed, and where there is nothing', () => {
    expect(freeze(heads, { expected: 'other', stages: [] })).toEqual({ outcome: 'changed', lanes: 2 })
    expect(freeze(heads.slice(2), { expected: 'other', stages: [] })).toEqual({ outcome: 'nothing', busy: 1 })
    expect(freeze([], { expected: undefined, stages: [] })).toEqual({ outcome: 'nothing', busy: 0 })
  })
})

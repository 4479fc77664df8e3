import { describe, expect, it } from 'vitest'
import type { EffectLine, Line } from './evidence.ts'
import { judge, type Open } from './judge.ts'
import type { Act } from './tasks.ts'
import type { Written } from './writer.ts'

// Whoever judges must be able to say no.

const [one, two] = ['one', 'two']

function effect(phase: EffectLine['phase'], process: string, version: number, more: Partial<EffectLine> = {}): Line {
  const id = `a-${version}`
  return { phase, process, id, key: 'a', version, idempotencyKey: `effects/${id}`, attempt: 1, ...more }
}

const whole = (process: string, version: number) => [effect('begin', process, version), effect('end', process, version)]
const finished = (version: number): Line => ({ phase: 'finished', process: one, id: `a-${version}` })

function written(...acts: readonly Act[]): Written[] {
  return acts.map((act, i) => ({ id: `a-${i + 1}`, key: 'a', version: i + 1, position: i + 1, act }))
}

function judged(lines: readonly Line[], events: readonly Written[], open: readonly Open[] = []) {
  return judge(lines, events, open)
}

describe('the judge of effects', () => {
  it('finds nothing wrong with what was repeated by another process before it was done', () => {
    const lines = [
      ...whole(one, 1),
      effect('begin', one, 2),
      ...whole(two, 1),
      finished(1),
      ...whole(two, 2),
      finished(2),
    ]
    expect(judged(lines, written('go', 'go'))).toMatchObject({
      effects: 4,
      cutOff: 1,
      repeated: 2,
      repeatedAfterEnd: 1,
      lost: 0,
      inverted: 0,
      againAfterFinish: 0,
      problems: [],
    })
  })

  it('finds what is lost, and leaves alone what is held for a reason', () => {
    const parked: Open[] = [
      { id: 'a-2', status: 'parked', rule: 'said' },
      { id: 'a-3', status: 'queued', rule: undefined },
    ]
    expect(judged(whole(one, 1), written('go', 'refuse', 'go'), parked)).toMatchObject({ lost: 0, problems: [] })
    expect(judged(whole(one, 1), written('go', 'go'))).toMatchObject({ lost: 1 })
    expect(judged([effect('begin', one, 1)], written('go'))).toMatchObject({ lost: 1 })
    expect(judged([], written('go'), [{ id: 'a-1', status: 'parked', rule: 'crash' }]).problems).toHaveLength(1)
    expect(judged([], written('go'), [{ id: 'a-1', status: 'retrying', rule: 'said' }]).problems).toHaveLength(1)
  })

  it('finds what was begun out of order, or beside another of its lane', () => {
    const events = written('go', 'go')
    expect(judged([...whole(one, 2), ...whole(one, 1)], events)).toMatchObject({ inverted: 1 })
    const beside = [effect('begin', one, 1), effect('begin', two, 1), effect('end', one, 1), effect('end', two, 1)]
    expect(judged([...beside, ...whole(one, 2)], events)).toMatchObject({ inverted: 1 })
    // The first try had come to its end, but not the last.
    const early = [...whole(one, 1), effect('begin', two, 1), effect('begin', two, 2), effect('end', two, 2)]
    expect(judged(early, events)).toMatchObject({ inverted: 1 })
    const failed = [effect('begin', one, 1), effect('failed', one, 1), ...whole(one, 2), ...whole(one, 1)]
    expect(judged(failed, events)).toMatchObject({ inverted: 1, retried: 1 })
  })

  it('finds what was begun again although it was done', () => {
    expect(judged([...whole(one, 1), finished(1), effect('begin', two, 1)], written('go'))).toMatchObject({
      againAfterFinish: 1,
    })
  })

  it('finds a key that changed, and one that two events share', () => {
    const changed = [...whole(one, 1), effect('begin', two, 1, { idempotencyKey: 'other' })]
    expect(judged(changed, written('go')).problems).toHaveLength(1)
    const shared = [...whole(one, 1), effect('begin', one, 2, { idempotencyKey: 'effects/a-1' }), effect('end', one, 2)]
    expect(judged(shared, written('go', 'go')).problems).toHaveLength(1)
  })
})

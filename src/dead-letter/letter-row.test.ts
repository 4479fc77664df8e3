import { describe, expect, it } from 'vitest'
import { describeFailure } from '../failure/failure.ts'
import { toDeadLetter, toLane } from './letter-row.ts'

describe('a lane', () => {
  const lane = { lane: 'a', status: 'parked', since: 5, done: 2, head: 3, headPosition: 30 } as const
  const none = { dueAt: null, tries: null, breaker: null, redrive: null }

  it('has only what its row has', () => {
    expect(toLane({ ...lane, ...none })).toStrictEqual(lane)
    expect(toLane({ ...lane, ...none, done: null })).toStrictEqual({ ...lane, done: undefined })
    expect(toLane({ ...lane, ...none, done: 0 }).done).toBe(0)
  })

  it('says when it is due, how often it was tried, what it waits for and who lets it go', () => {
    const more = { dueAt: 0, tries: 1, breaker: 'bank', redrive: 'r1' }
    expect(toLane({ ...lane, ...more })).toStrictEqual({ ...lane, ...more })
    expect(toLane({ ...lane, ...none, tries: 0 })).toStrictEqual(lane)
  })
})

describe('a letter', () => {
  const row = {
    subscription: 'balances',
    partition: 1,
    lane: 'a',
    sequence: 3,
    status: 'parked',
    position: 30,
    event_id: 'e30',
    type: 'Debited',
    key: 'a',
    version: 3,
    schema_version: 2,
    time: '2026-01-01T00:00:00.000Z',
    attempts: '[]',
    attempts_total: 0,
    held_at: 40,
    ended_at: null,
    ended_by: null,
    ended_reason: null,
    revision: null,
  } as const
  const parts = { logged: true, body: '{}', metadata: '{"by":"ada"}' }

  it('has the event as it came', () => {
    expect(toDeadLetter(row, parts)).toStrictEqual({
      subscription: 'balances',
      partition: 1,
      lane: 'a',
      sequence: 3,
      status: 'parked',
      logged: true,
      event: {
        position: 30,
        id: 'e30',
        type: 'Debited',
        key: 'a',
        version: 3,
        schemaVersion: 2,
        time: '2026-01-01T00:00:00.000Z',
        body: '{}',
        metadata: '{"by":"ada"}',
      },
      failure: undefined,
      attempts: [],
      attemptsTotal: 0,
      heldAt: 40,
      endedAt: undefined,
      endedBy: undefined,
      endedReason: undefined,
      revision: undefined,
    })
    expect(toDeadLetter({ ...row, version: null }, parts).event.version).toBeUndefined()
  })

  it('failed as it did the last time', () => {
    const [first, second, last] = ['first', 'second', 'last'].map((message, at) => ({
      at,
      failure: describeFailure(new Error(message), 'permanent', 'fold'),
    }))
    const letter = toDeadLetter({ ...row, attempts: JSON.stringify([first, second, last]), attempts_total: 9 }, parts)
    expect(letter.attempts).toEqual([first, second, last])
    expect(letter.failure).toEqual(last?.failure)
    expect(letter.attemptsTotal).toBe(9)
  })

  it('says who ended it, and what a person made of it', () => {
    const revision = { number: 1, body: '{"amount":1}', by: 'ada', reason: 'a typo', at: 45 }
    const ended = { status: 'discarded', ended_at: 50, ended_by: 'bob', ended_reason: 'twice' } as const
    expect(toDeadLetter({ ...row, ...ended, revision: JSON.stringify(revision) }, parts)).toMatchObject({
      status: 'discarded',
      endedAt: 50,
      endedBy: 'bob',
      endedReason: 'twice',
      revision,
    })
  })
})

import { createVirtualRuntime } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { describeFailure, inVersion } from '../../failure/failure.ts'
import { type Checkpoint, noCounts } from '../../subscription/checkpoint.ts'
import type { Commit, CommitOutcome, Lease, PartitionState } from '../../subscription/subscription-store.ts'
import { letter } from '../../testing/contracts/fixtures.ts'
import { destination, Ownership, type Written } from './ownership.ts'
import type { WorkerParts } from './worker-parts.ts'

const leaseMs = 9_000
const lease: Lease = { subscription: 's', partition: 3, owner: 'me', epoch: 5 }
const checkpoint: Checkpoint = {
  start: 0,
  position: 10,
  eventId: 'e10',
  eventType: 'T',
  eventTime: 't10',
  committedAt: 1,
  counts: { ...noCounts(), applied: 10 },
  commits: 4,
}
const to = { position: 12, eventId: 'e12', eventType: 'T', eventTime: 't12' }
const written: Written = { counts: { ...noCounts(), applied: 2 }, rows: [], lanes: [], held: [], letters: [] }

/** An owner at position 10, and a store that answers as it is told to, after a while. */
function holding({ kind = 'fold', version = 1 } = {}) {
  const runtime = createVirtualRuntime()
  const answers = { commit: { outcome: 'committed' } as CommitOutcome, isRenewed: true, isReleased: true, tookMs: 0 }
  const calls: unknown[][] = []
  const told: unknown[] = []
  const forced = new AbortController()
  const asked = async <T>(call: unknown[], answer: T): Promise<T> => {
    calls.push(call)
    if (answers.tookMs > 0) await runtime.timers.sleep(answers.tookMs)
    return answer
  }
  const now = { epoch: 6, owner: 'she' } as PartitionState
  const subscriptions = {
    commit: (commit: Commit) => asked(['commit', commit], answers.commit),
    renew: (...call: unknown[]) => asked(['renew', ...call], answers.isRenewed),
    load: (...call: unknown[]) => asked(['load', ...call], now),
    release: async (...call: unknown[]) => {
      await asked(['release', ...call], undefined)
      if (!answers.isReleased) throw new Error('away')
    },
  }
  const parts = {
    store: { subscriptions },
    subscription: { name: 's', consumer: { kind, version, table: { name: 'balances', columns: [] } } },
    share: { partition: 3, of: 4 },
    settings: { leaseMs },
    runtime,
    emitter: { emit: (...event: unknown[]) => told.push(event) },
    logger: { warn: (fields: object) => told.push(['warn', fields]) },
    fenced: () => told.push('fenced'),
  } as unknown as WorkerParts
  const ownership = new Ownership(parts, forced.signal, (next) => told.push(next))
  ownership.lease = lease
  ownership.load({ checkpoint, pause: undefined } as PartitionState)
  /** Lets a call take as long as the store does. */
  const after = async <T>(call: Promise<T>): Promise<T> => {
    await runtime.advance(answers.tookMs)
    return call
  }
  return { runtime, ownership, answers, calls, told, forced, after }
}

const lost = [
  'fenced',
  ['partition.fenced', { subscription: 's', partition: 3, epoch: 5, newEpoch: 6, owner: 'she' }],
  { state: 'starting', owner: 'she' },
]

describe('what is committed', () => {
  it('follows on what was committed last, under the lease', async () => {
    const { ownership, calls, runtime } = holding()
    const commit = ownership.commitOf(written, to, { tried: 30 })
    expect(commit).toEqual({
      lease,
      leaseMs,
      from: 10,
      commits: 4,
      to,
      at: runtime.clock.now(),
      table: { name: 'balances', columns: [] },
      tried: 30,
      ...written,
    })
    expect(ownership.commitOf(written, to)).not.toHaveProperty('tried')
    expect(await ownership.commit(commit)).toEqual({ outcome: 'committed' })
    expect(calls).toEqual([['commit', commit]])
  })

  it('is nothing any more when nobody waits for it', () => {
    const { ownership, calls, forced } = holding()
    const commit = ownership.commitOf(written, to)
    forced.abort()
    expect(() => ownership.commit(commit)).toThrow(/aborted/)
    expect(calls).toEqual([])
  })

  it('moves the checkpoint when it is in the store', async () => {
    const { ownership, runtime } = holding()
    expect([ownership.seen, ownership.checkpoint]).toEqual([10, checkpoint])
    await runtime.advance(100)
    const commit = ownership.commitOf(written, to)
    await runtime.advance(50)
    ownership.accept(commit)
    expect(ownership.checkpoint).toEqual({
      ...to,
      start: 0,
      committedAt: runtime.clock.now(),
      commits: 5,
      counts: { ...noCounts(), applied: 12 },
    })
    expect([ownership.seen, ownership.committedAt, ownership.renewedAt]).toEqual([12, 150, 100])
    // What was seen beyond it stays seen.
    ownership.seen = 99
    ownership.accept({ to: { ...to, position: 13 }, counts: noCounts() })
    expect([ownership.seen, ownership.checkpoint?.position, ownership.checkpoint?.commits]).toEqual([99, 13, 6])
  })

  it('says of which version of the code its failures are', () => {
    const failure = describeFailure(new Error('no'), 'permanent', 'fold')
    const held = [{ ...letter('a', 1, 'parked'), failure }, letter('a', 2, 'queued')]
    const letters: Written['letters'] = [
      { change: 'failed', position: 1, status: 'parked', failure },
      { change: 'resolved', position: 2, by: 'engine' },
    ]
    const parts = { ...written, held, letters }
    expect(holding().ownership.commitOf(parts, to)).toMatchObject(parts)
    const later = inVersion(failure, 2)
    expect(later).not.toEqual(failure)
    expect(holding({ version: 2 }).ownership.commitOf(parts, to)).toMatchObject({
      counts: written.counts,
      held: [{ ...held[0], failure: later }, held[1]],
      letters: [{ ...letters[0], failure: later }, letters[1]],
    })
  })
})

describe('what is refused', () => {
  it('because another owns the partition ends the ownership, and all hear of it', () => {
    for (const fenced of [
      { epoch: 6, owner: 'she' },
      { epoch: 5, owner: 'she' },
      { epoch: 6, owner: 'me' },
      { epoch: undefined, owner: undefined },
    ]) {
      const { ownership, told } = holding()
      expect(ownership.refuse({ outcome: 'fenced', ...fenced })).toBe('lost')
      expect(ownership.lease).toBeUndefined()
      expect(told).toEqual([
        'fenced',
        ['partition.fenced', expect.objectContaining({ epoch: 5, newEpoch: fenced.epoch, owner: fenced.owner })],
        { state: 'starting', owner: fenced.owner },
      ])
    }
  })

  it('although the owner is the same is read again, but not of a handler', () => {
    const same = { outcome: 'fenced', epoch: 5, owner: 'me' } as const
    for (const kind of ['fold', 'sql']) {
      const { ownership, told } = holding({ kind })
      expect(ownership.refuse(same)).toBe('refused')
      expect([ownership.lease, told]).toEqual([lease, []])
    }
    const { ownership, told } = holding({ kind: 'handler' })
    expect(ownership.refuse(same)).toBe('lost')
    expect([ownership.lease, told.length]).toEqual([undefined, 3])
  })

  it('because it was lost before is nobody’s', () => {
    const { ownership, told } = holding()
    ownership.lease = undefined
    expect(ownership.refuse({ outcome: 'fenced', epoch: undefined, owner: undefined })).toBe('lost')
    expect(told[1]).toEqual(['partition.fenced', expect.objectContaining({ epoch: 0 })])
  })

  it('of a partition that is not there any more is lost as well', () => {
    const { ownership, told } = holding()
    ownership.lost(undefined)
    expect(told.slice(1)).toEqual([
      ['partition.fenced', expect.objectContaining({ epoch: 5, newEpoch: undefined, owner: undefined })],
      { state: 'starting', owner: undefined },
    ])
  })

  it('because somebody paused it waits for them', () => {
    const { ownership, told } = holding()
    const pause = { reason: 'a test', at: 7 }
    expect(ownership.refuse({ outcome: 'paused', pause })).toBe('refused')
    expect([ownership.pause, ownership.lease, told]).toEqual([pause, lease, []])
  })

  it('for a row that is not there is an error', () => {
    const { ownership } = holding()
    const error = new Error('a rule')
    expect(() => ownership.refuse({ outcome: 'rejected', key: 'a', error })).toThrow(
      expect.objectContaining({ code: 'INTERNAL', cause: error }),
    )
  })
})

describe('the lease', () => {
  it('is renewed after a third of its time, and counts from when it was asked for', async () => {
    const { ownership, runtime, answers, calls, after } = holding()
    await runtime.advance(leaseMs / 3 - 1)
    await ownership.keep()
    expect(calls).toEqual([])
    await runtime.advance(1)
    answers.tookMs = 400
    await after(ownership.keep())
    expect(calls).toEqual([['renew', lease, leaseMs]])
    expect(ownership.renewedAt).toBe(leaseMs / 3)
    await ownership.keep()
    expect(calls).toHaveLength(1)
    await runtime.advance(leaseMs - 401)
    expect(ownership.isCurrent()).toBe(true)
    await runtime.advance(1)
    expect(ownership.isCurrent()).toBe(false)
  })

  it('is not set back by an answer that comes late', async () => {
    const { ownership, runtime } = holding()
    await runtime.advance(100)
    const commit = ownership.commitOf(written, to)
    ownership.renewedAt = 200
    ownership.accept(commit)
    expect(ownership.renewedAt).toBe(200)
  })

  it('is lost when it can not be renewed', async () => {
    const { ownership, runtime, answers, calls, told, after } = holding()
    await runtime.advance(leaseMs)
    answers.isRenewed = false
    await after(ownership.keep())
    expect(calls.map(([name]) => name)).toEqual(['renew', 'load'])
    expect(calls[1]).toEqual(['load', 's', 3])
    expect(told).toEqual(lost)
    expect([ownership.lease, ownership.isCurrent()]).toEqual([undefined, false])
    await ownership.keep()
    expect(calls).toHaveLength(2)
  })

  it('of nobody is not current, however young', () => {
    const { ownership } = holding()
    expect(ownership.isCurrent()).toBe(true)
    ownership.lease = undefined
    expect(ownership.isCurrent()).toBe(false)
  })

  it('is given back once, with what its next owner must know', async () => {
    const { ownership, calls, told } = holding()
    await ownership.release(true)
    await ownership.release(true)
    expect(calls).toEqual([['release', lease, true]])
    expect([ownership.lease, told]).toEqual([undefined, []])
  })

  it('runs out by itself when the store is away', async () => {
    const { ownership, answers, calls, told } = holding()
    answers.isReleased = false
    await ownership.release(false)
    expect(calls).toEqual([['release', lease, false]])
    expect(told).toEqual([['warn', { subscription: 's', error: new Error('away') }]])
    expect(ownership.lease).toBeUndefined()
  })
})

it('a checkpoint goes to the last event, or keeps it where there was none', () => {
  const last = { id: 'e11', type: 'U', time: 't11' }
  expect(destination(checkpoint, 12, last)).toEqual({
    position: 12,
    eventId: 'e11',
    eventType: 'U',
    eventTime: 't11',
  })
  expect(destination(checkpoint, 12, undefined)).toEqual({
    position: 12,
    eventId: 'e10',
    eventType: 'T',
    eventTime: 't10',
  })
})

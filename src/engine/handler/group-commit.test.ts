import { describe, expect, it } from 'vitest'
import { createDeskOf, heldLane, letterOf } from '../../../test/handler-state.ts'
import { type Checkpoint, noCounts } from '../../subscription/checkpoint.ts'
import type { Commit, CommitOutcome } from '../../subscription/subscription-store.ts'
import { Suspicion } from '../crash/suspicion.ts'
import { Ownership } from '../ownership/ownership.ts'
import { type Entry, entryOf } from './entry.ts'
import { GroupCommit } from './group-commit.ts'
import { Suspects } from './suspects.ts'

const start: Checkpoint = {
  start: 0,
  position: 0,
  eventId: undefined,
  eventType: undefined,
  eventTime: undefined,
  committedAt: undefined,
  commits: 4,
  counts: noCounts(),
}

/** A store that does as the test says: takes it, says something else, or nobody knows. */
type Answer = 'takes' | 'loses before' | 'loses after' | Exclude<CommitOutcome, { outcome: 'committed' }>

function committing() {
  const made = createDeskOf()
  const { handlerState } = made
  const { parts } = handlerState
  const commits: Commit[] = []
  const accepted: Commit[] = []
  const lost: unknown[] = []
  const said: string[] = []
  const state = { epoch: 1, commits: start.commits, takesMs: 0 }
  const answers: Answer[] = []
  const commit = async (one: Commit): Promise<CommitOutcome> => {
    commits.push(one)
    await made.runtime.advance(state.takesMs)
    const answer = answers.shift() ?? 'takes'
    if (answer === 'takes' || answer === 'loses after') state.commits++
    if (answer === 'takes') return { outcome: 'committed' }
    if (typeof answer === 'string') throw new Error('The test took the store away.')
    return answer
  }
  const load = async () => ({ epoch: state.epoch, checkpoint: { ...start, commits: state.commits } })
  const ownership = new Ownership(
    { ...parts, fenced: () => void lost.push('fenced') },
    new AbortController().signal,
    () => undefined,
  )
  ownership.load({ checkpoint: start, pause: undefined } as never)
  ownership.lease = { subscription: 'notify', partition: 0, owner: 'o', epoch: 1 }
  Object.assign(parts.store, { subscriptions: { commit, load } })
  Object.assign(parts, {
    ownership,
    rate: { add: (_begun: number, _ended: number, events: number) => void said.push(`rate ${events}`) },
    outcomeReporter: { tell: () => void said.push('tell') },
    fenced: () => undefined,
  })
  parts.emitter.on('page.committed', ({ position, events, durationMs }) => {
    said.push(`committed ${position} ${events} ${durationMs}`)
  })
  parts.emitter.on('message.acked', ({ eventId }) => void said.push(`acked ${eventId}`))
  const group = new GroupCommit(handlerState, (one) => void accepted.push(one))
  const read = (...positions: number[]) => {
    const entries = positions.map((position) => entryOf(handlerState, letterOf('a', position).event))
    handlerState.window.add(entries, Math.max(...positions))
    return entries
  }
  const apply = (entry: Entry | undefined) => {
    if (!entry) return
    handlerState.ledger.applied(entry.record, undefined)
    handlerState.window.finish(entry)
  }
  return { ...made, group, commits, accepted, lost, said, state, answers, ownership, read, apply }
}

describe('a commit', () => {
  it('lets the partition go on when the store has that nothing holds it up, and not before', async () => {
    const { group, handlerState } = committing()
    handlerState.tracks.bar('')
    handlerState.partition.held.set('a', heldLane('a'))
    await group.commit(undefined)
    expect(handlerState.tracks.isBarred('')).toBe(true)
    // Released while a commit is on its way that does not have it yet.
    const { promise, resolve } = Promise.withResolvers<void>()
    const { subscriptions } = handlerState.parts.store
    const commit = subscriptions.commit.bind(subscriptions)
    Object.assign(subscriptions, { commit: (one: Commit) => promise.then(() => commit(one)) })
    const first = group.commit(undefined)
    handlerState.ledger.advance('a', undefined)
    resolve()
    await first
    expect([handlerState.partition.held.size, handlerState.tracks.isBarred('')]).toEqual([0, true])
    await group.commit(undefined)
    expect(handlerState.tracks.isBarred('')).toBe(false)
  })

  it('has everything since the last one, and how far it may go', async () => {
    const { group, read, apply, commits, accepted, handlerState, said, told, ownership, now, runtime } = committing()
    await runtime.advance(5)
    const [first, , third] = read(1, 2, 3)
    apply(first)
    apply(third)
    expect(await group.commit({ position: 7, instance: 'i' })).toBe('worked')
    expect(commits).toMatchObject([
      {
        from: 0,
        commits: 4,
        to: { position: 1, eventId: 'a-1' },
        counts: { applied: 2 },
        marks: [[3, 3]],
        tried: 103,
        trial: { position: 7 },
      },
    ])
    expect(accepted).toEqual(commits)
    expect([handlerState.window.size, ownership.checkpoint?.position, ownership.checkpoint?.commits]).toEqual([2, 1, 5])
    expect(handlerState.beginWindow.covers(3, now())).toBe(true)
    expect([handlerState.beginWindow.covers(103, now()), handlerState.beginWindow.covers(103, now() + 100)]).toEqual([
      true,
      false,
    ])
    expect(told.changed).toBe(1)
    expect(said).toEqual(['rate 2', 'committed 1 2 0', 'acked a-1', 'acked a-3', 'tell'])
    expect([group.isPending, handlerState.ledger.isEmpty]).toEqual([false, true])
  })

  it('leaves the checkpoint where it is while nothing is done, with the event that it is at', async () => {
    const { group, read, apply, commits } = committing()
    const [first, second] = read(1, 2, 3)
    apply(first)
    await group.commit(undefined)
    await group.commit(undefined)
    expect(commits[1]).toMatchObject({ from: 1, to: { position: 1, eventId: 'a-1' }, marks: [] })
    apply(second)
    await group.commit(undefined)
    expect(commits[2]).toMatchObject({ to: { position: 2, eventId: 'a-2' } })
  })

  it('is followed by a rest of eight times as long, and 50 ms at the most', async () => {
    const { group, state, now, runtime } = committing()
    await runtime.advance(7)
    expect(group.restsUntil).toBe(Number.NEGATIVE_INFINITY)
    state.takesMs = 3
    await group.commit(undefined)
    expect(group.restsUntil).toBe(now() + 24)
    state.takesMs = 30
    await group.commit(undefined)
    expect(group.restsUntil).toBe(now() + 50)
  })

  it('says while some are suspects that all of them may have been begun, and no more', async () => {
    for (const [upTo, tried] of [
      [2, 3],
      [8, 8],
    ] as const) {
      const { handlerState, read, commits } = committing()
      const suspicion = new Suspicion([], true, 'i', 3)
      const suspects = new Suspects(upTo, new Map(), 0)
      const group = new GroupCommit({ ...handlerState, suspicion, suspects }, () => undefined)
      read(1, 2, 3)
      await group.commit(undefined)
      expect(commits[0]).toMatchObject({ tried })
    }
  })
})

describe('a commit whose end is not known', () => {
  it.for([
    ['loses before', 2],
    ['loses after', 1],
  ] as const)('is made if it was not, and taken for made if it was: the store %s it', async ([answer, times]) => {
    const { group, answers, read, apply, commits, accepted, ownership, handlerState } = committing()
    answers.push(answer)
    apply(read(1)[0])
    await expect(group.commit(undefined)).rejects.toThrow('took the store away')
    expect([group.isPending, ownership.checkpoint?.position]).toEqual([true, 0])
    // What ends meanwhile is for the next one.
    apply(read(2)[0])
    expect(await group.resolve()).toBe('worked')
    expect(commits).toHaveLength(times)
    expect(accepted).toHaveLength(1)
    expect([group.isPending, ownership.checkpoint?.position, handlerState.ledger.isEmpty]).toEqual([false, 1, false])
    expect(await group.resolve()).toBe('worked')
    expect(commits).toHaveLength(times)
  })

  it('is somebody else’s to find out when the partition is', async () => {
    for (const epoch of [2, undefined]) {
      const { group, answers, read, apply, state, lost, commits, ownership, handlerState } = committing()
      answers.push('loses before')
      apply(read(1)[0])
      await group.commit(undefined).catch(() => undefined)
      if (epoch === undefined) Object.assign(handlerState.parts.store.subscriptions, { load: async () => undefined })
      else state.epoch = epoch
      expect(await group.resolve()).toBe('lost')
      expect([lost, commits.length, ownership.lease]).toEqual([['fenced'], 1, undefined])
    }
  })

  it('without outcomes is no reason to wait for it', async () => {
    const { group, answers } = committing()
    answers.push('loses before')
    await group.commit(undefined).catch(() => undefined)
    expect(group.isPending).toBe(false)
  })
})

describe('a commit that is refused', () => {
  it('because it is paused is made all the same, and allows nothing more', async () => {
    const { group, answers, read, apply, commits, ownership, handlerState, now } = committing()
    answers.push({ outcome: 'paused', pause: { reason: 'a test', at: 5 } })
    const [first] = read(1, 2)
    apply(first)
    expect(await group.commit({ position: 2, instance: 'i' })).toBe('paused')
    expect(ownership.pause).toEqual({ reason: 'a test', at: 5 })
    expect(await group.resolve()).toBe('worked')
    expect(commits[1]).toMatchObject({ evenPaused: true, tried: undefined, trial: undefined, counts: { applied: 1 } })
    expect(handlerState.beginWindow.covers(2, now())).toBe(false)
    apply(read(3)[0])
    await group.commit(undefined)
    expect(commits[2]).toMatchObject({ evenPaused: true, tried: undefined })
  })

  it('because the partition is somebody else’s is the end', async () => {
    const { group, answers, read, apply, lost } = committing()
    answers.push({ outcome: 'fenced', epoch: 2, owner: 'other' })
    apply(read(1)[0])
    expect(await group.commit(undefined)).toBe('lost')
    expect(lost).toEqual(['fenced'])
  })
})

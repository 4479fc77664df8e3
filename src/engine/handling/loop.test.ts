import { describe, expect, it } from 'vitest'
import { createDeskOf, type DeskSetup, heldLane } from '../../../test/desk.ts'
import { definePolicy, failure, fixed, pause, retry } from '../../index.ts'
import { type Checkpoint, noCounts } from '../../subscription/checkpoint.ts'
import type { Commit, CommitOutcome } from '../../subscription/subscription-store.ts'
import { Tenure } from '../tenure.ts'
import type { HandlerLoopParts } from './desk.ts'
import { HandlerLoop } from './loop.ts'

const leaseMs = 9_000

/** A loop on a store that takes every commit, with calls that end when the test says so. */
function looping(setup: DeskSetup = {}, more: Partial<HandlerLoopParts> = {}) {
  const calls: { readonly id: string; readonly end: (error?: unknown) => void }[] = []
  const made = createDeskOf({
    ...setup,
    definition: {
      ...setup.definition,
      on: {
        Credited: ({ id }) =>
          new Promise((resolve, reject) => {
            calls.push({ id, end: (error) => (error === undefined ? resolve(undefined) : reject(error)) })
          }),
      },
    },
  })
  const { parts, handler, partition } = made.desk
  const commits: Commit[] = []
  const states: string[] = []
  const answers: (CommitOutcome | 'away')[] = []
  const script = { isRenewed: true, renewals: 0, takesMs: 0 }
  const commit = async (one: Commit): Promise<CommitOutcome> => {
    commits.push(one)
    if (script.takesMs > 0) await made.runtime.advance(script.takesMs)
    const answer = answers.shift() ?? { outcome: 'committed' }
    if (answer === 'away') throw new Error('The test took the store away.')
    return answer
  }
  const load = async () => ({ epoch: 1, checkpoint: { commits: commits.length - 1 } })
  const renew = async () => {
    script.renewals++
    return script.isRenewed
  }
  Object.assign(parts.store, { subscriptions: { commit, load, renew } })
  Object.assign(parts, {
    settings: { ...parts.settings, leaseMs },
    rate: { add: () => undefined },
    teller: { tell: () => undefined },
    fenced: () => undefined,
    enter: ({ state }: { readonly state: string }) => void states.push(state),
  })
  const tenure = new Tenure(parts, new AbortController().signal, () => undefined)
  const checkpoint = { start: 0, position: 0, commits: 0, counts: noCounts() } as unknown as Checkpoint
  tenure.load({ checkpoint, pause: undefined } as never)
  tenure.lease = { subscription: 'notify', partition: 0, owner: 'o', epoch: 1 }
  Object.assign(parts, { tenure, ...more })
  const loop = new HandlerLoop(parts, handler, partition)
  const deliver = (...keys: string[]) => {
    for (const key of keys) made.source.deliver({ key, type: 'Credited', data: { amount: 1 } })
  }
  const turn = () => made.runtime.advance(0)
  /** As a worker does, until there is nothing to do at once. */
  const settle = async () => {
    let step = await loop.step()
    for (let i = 0; step === 'worked' && i < 20; i++) {
      await turn()
      step = await loop.step()
    }
    await turn()
    return step
  }
  const applied = () => commits.reduce((sum, { counts }) => sum + counts.applied, 0)
  return { ...made, loop, calls, commits, states, answers, tenure, lease: script, deliver, turn, settle, applied }
}

describe('a loop', () => {
  it('says what may be begun before it begins, and commits what was done', async () => {
    const { loop, deliver, settle, calls, commits, turn, applied, told, runtime, tenure } = looping()
    deliver('a', 'b')
    expect(loop.standing()).toEqual({ state: 'catching-up' })
    expect(await settle()).toBe('idle')
    expect(calls).toHaveLength(2)
    expect(commits).toHaveLength(1)
    expect(commits[0]).toMatchObject({ to: { position: 0 }, counts: { applied: 0 } })
    expect(commits[0]?.tried).toBeGreaterThanOrEqual(2)
    expect(loop.hasUnwritten).toBe(false)
    const { wake } = told
    calls[1]?.end()
    await turn()
    expect([told.wake > wake, loop.hasUnwritten]).toEqual([true, true])
    calls[0]?.end()
    await turn()
    await runtime.advance(50)
    expect(await settle()).toBe('idle')
    expect([applied(), loop.hasUnwritten, tenure.checkpoint?.position]).toEqual([2, false, 2])
    expect(loop.standing()).toEqual({ state: 'live' })
  })

  it('is due while a redrive may have something, or lanes are, or are worked off', async () => {
    const { loop, settle } = looping({ held: [heldLane('a', { dueAt: 0 })], queues: { a: 1 } })
    expect(loop.isDue).toBe(true)
    await settle()
    expect(loop.isDue).toBe(true)
    const idle = looping()
    expect(idle.loop.isDue).toBe(true)
    await idle.settle()
    expect(idle.loop.isDue).toBe(false)
    idle.loop.redriven()
    expect(idle.loop.isDue).toBe(true)
  })

  it('reads again when something may be there', async () => {
    const { loop, deliver, settle, calls } = looping()
    await settle()
    deliver('a')
    await settle()
    expect(calls).toHaveLength(0)
    loop.appended()
    await settle()
    expect(calls).toHaveLength(1)
  })

  it('ends when the partition is somebody else’s', async () => {
    const { loop, tenure, lease, runtime } = looping()
    lease.isRenewed = false
    await runtime.advance(leaseMs / 3)
    expect(await loop.step()).toBe('lost')
    expect(tenure.lease).toBeUndefined()
  })

  it('ends when its commit is refused because of that, and begins nothing', async () => {
    const { loop, deliver, answers, calls, turn, states } = looping()
    deliver('a')
    answers.push({ outcome: 'fenced', epoch: 2, owner: 'other' })
    expect(await loop.step()).toBe('lost')
    await turn()
    expect([calls.length, states]).toEqual([0, []])
  })

  it('does nothing more when it finds out that it is paused', async () => {
    const { loop, deliver, answers, calls, turn } = looping()
    deliver('a')
    answers.push({ outcome: 'paused', pause: { reason: 'a test', at: 0 } })
    expect(await loop.step()).toBe('paused')
    await turn()
    expect(calls).toHaveLength(0)
  })

  it('finds out about a commit before it does anything else', async () => {
    const { loop, deliver, settle, calls, answers, commits, turn, runtime } = looping()
    deliver('a')
    await settle()
    calls[0]?.end()
    await turn()
    await runtime.advance(50)
    answers.push('away')
    await expect(loop.step()).rejects.toThrow('took the store away')
    expect(loop.hasUnwritten).toBe(true)
    expect(await settle()).toBe('idle')
    expect([commits.length, loop.hasUnwritten]).toEqual([3, false])
  })
})

describe('while it is paused', () => {
  it('begins nothing, and keeps what was done', async () => {
    const { loop, deliver, settle, calls, tenure, turn, applied } = looping()
    deliver('a', 'b')
    await settle()
    tenure.pause = { reason: 'a test', at: 0 }
    calls[0]?.end()
    await turn()
    deliver('c')
    loop.appended()
    expect(await settle()).toBe('paused')
    expect([applied(), calls.length]).toEqual([1, 2])
    expect(loop.restMs()).toBe(leaseMs / 3)
    tenure.pause = undefined
    await settle()
    expect(calls).toHaveLength(3)
  })
})

describe('its rest', () => {
  it('is a third of the lease, or as long as a source may not be asked', async () => {
    for (const [foreign, ms] of [
      [false, leaseMs / 3],
      [true, 100],
    ] as const) {
      const { loop, settle, runtime } = looping({ foreign })
      await runtime.advance(1_000)
      await settle()
      expect(loop.restMs()).toBe(ms)
    }
  })

  it('is over when a lane is due, or a retry in place', async () => {
    const held = looping({ held: [heldLane('a', { dueAt: Date.UTC(2026, 0, 1) + 1_700 })], queues: { a: 1 } })
    await held.runtime.advance(1_000)
    await held.settle()
    expect(held.loop.restMs()).toBe(700)
    await held.runtime.advance(700)
    await held.settle()
    expect(held.calls).toHaveLength(1)

    const again = looping({
      definition: {
        failure: definePolicy({ transient: retry({ attempts: 9, backoff: fixed('200ms') }), outage: false }),
      },
    })
    again.deliver('a')
    await again.runtime.advance(1_000)
    await again.settle()
    again.calls[0]?.end(failure.transient('not now'))
    await again.turn()
    await again.settle()
    expect(again.loop.restMs()).toBe(200)
  })

  it('is over when it may ask again after it stood still, and it says so', async () => {
    const policy = definePolicy({ dependency: pause({ failures: 1, for: '800ms' }), outage: false })
    const { loop, deliver, settle, calls, turn, runtime, states } = looping({ definition: { failure: policy } })
    deliver('a')
    await runtime.advance(1_000)
    await settle()
    calls[0]?.end(failure.dependency('the bank'))
    await turn()
    await settle()
    expect(states).toContain('blocked')
    expect(loop.standing()).toMatchObject({
      state: 'blocked',
      by: 'pause',
      attempts: 0,
      retryAt: runtime.clock.now() + 800,
    })
    expect(loop.restMs()).toBe(800)
    await runtime.advance(800)
    expect(loop.restMs()).toBe(0)
    await settle()
    expect(calls).toHaveLength(2)
  })
})

describe('what was done', () => {
  it('waits for more until the store has rested, if nothing waits for it', async () => {
    const { loop, deliver, settle, calls, commits, turn, lease, runtime, told, applied } = looping()
    await runtime.advance(1_000)
    lease.takesMs = 5
    deliver('a', 'b', 'c')
    await settle()
    const begun = commits.length
    calls[0]?.end()
    await turn()
    expect(await loop.step()).toBe('idle')
    expect([commits.length, loop.restMs()]).toEqual([begun, 40])
    // The time for it is set: who ends meanwhile wakes nobody.
    const { wake } = told
    calls[1]?.end()
    await turn()
    expect(told.wake).toBe(wake)
    await runtime.advance(40)
    await settle()
    expect([commits.length, applied()]).toEqual([begun + 1, 2])
  })

  it('is written at once where something waits for it: more is to be begun', async () => {
    const { loop, deliver, settle, calls, commits, turn, lease, runtime } = looping({
      definition: { concurrency: 200 },
    })
    await runtime.advance(1_000)
    lease.takesMs = 5
    deliver('a')
    await settle()
    const begun = commits.length
    calls[0]?.end()
    await turn()
    // Beyond what may be begun without a commit.
    deliver(...Array.from({ length: 150 }, (_, i) => `key-${i}`))
    loop.appended()
    expect(await loop.step()).toBe('worked')
    expect(commits.length).toBe(begun + 1)
  })
})

describe('what is for other partitions', () => {
  it('is seen at once, and passed by the checkpoint now and then', async () => {
    const { loop, desk, commits, tenure, runtime, told, settle } = looping()
    await runtime.advance(1_000)
    await settle()
    tenure.committedAt = 1_000
    const before = commits.length
    desk.parts.source.read = async () => ({ events: [], through: 10, isEnd: true })
    loop.appended()
    const { changed } = told
    expect(await settle()).toBe('idle')
    expect([tenure.seen, tenure.checkpoint?.position, commits.length, told.changed]).toEqual([
      10,
      0,
      before,
      changed + 1,
    ])
    expect(loop.restMs()).toBe(1_000)
    await runtime.advance(999)
    await settle()
    expect(commits).toHaveLength(before)
    await runtime.advance(1)
    await settle()
    expect([commits.length, tenure.checkpoint?.position]).toEqual([before + 1, 10])
    expect(loop.restMs()).toBe(leaseMs / 3)
  })
})

describe('after a death', () => {
  const inherited = (only?: 'letters') => {
    const state = { checkpoint: { position: 0 }, marks: [], trials: [{ position: -1, instance: 'dead' }], tried: 2 }
    return looping(only ? { only } : {}, { isInherited: true, state, end: 2 } as never)
  }

  it('is suspicious until all that may have killed has its outcome', async () => {
    const { loop, deliver, settle, calls, commits, turn, runtime } = inherited()
    deliver('a', 'b')
    expect([loop.isSuspect, loop.mayHaveTrials]).toEqual([true, false])
    await settle()
    expect(calls.map(({ id }) => id)).toHaveLength(1)
    expect([loop.isSuspect, loop.mayHaveTrials]).toEqual([true, true])
    expect(commits.some(({ trial }) => trial?.position === 1)).toBe(true)
    calls[0]?.end()
    await turn()
    await settle()
    expect(calls).toHaveLength(2)
    expect(loop.isSuspect).toBe(true)
    calls[1]?.end()
    await turn()
    await runtime.advance(50)
    await settle()
    expect(loop.isSuspect).toBe(false)
    expect(commits.flatMap(({ endedTrials }) => endedTrials ?? [])).toEqual(expect.arrayContaining([1, 2, -1]))
  })

  it('is suspicious still while a gap in the log hides what may have killed', async () => {
    const { loop, deliver, settle, calls, commits } = inherited()
    // As far as this process can tell, nothing is there; whoever died had seen further.
    await settle()
    expect([loop.standing().state, loop.isSuspect]).toEqual(['live', true])
    expect(commits.flatMap(({ endedTrials = [] }) => endedTrials)).toEqual([])
    deliver('a', 'b')
    loop.appended()
    await settle()
    expect(calls).toHaveLength(1)
    expect(commits.map(({ trial }) => trial?.position)).toContain(1)
  })

  it('is suspicious no more at the end of another source, where what was tried may never come', async () => {
    const state = { checkpoint: { position: 0 }, marks: [], trials: [{ position: -1, instance: 'dead' }], tried: 2 }
    const { loop, settle } = looping({ foreign: true }, { isInherited: true, state, end: 2 } as never)
    await settle()
    expect(loop.isSuspect).toBe(false)
  })

  it('is suspicious still who only works off letters, and can not tell', async () => {
    const { loop, settle } = inherited('letters')
    await settle()
    expect(loop.isSuspect).toBe(true)
  })
})

describe('the last words', () => {
  it('wait for what is under way, keep the lease meanwhile, and write it down', async () => {
    const { loop, deliver, settle, calls, applied, lease, runtime, turn } = looping()
    // Two more are read, and not begun any more.
    deliver('a', 'b', 'a', 'b')
    await settle()
    expect(calls).toHaveLength(2)
    let isOver = false
    const finished = loop.finish().then(() => (isOver = true))
    await runtime.advance(leaseMs)
    expect([isOver, lease.renewals > 1]).toEqual([false, true])
    deliver('c')
    for (const call of calls) call.end()
    await turn()
    await finished
    expect([isOver, applied(), calls.length, loop.hasUnwritten]).toEqual([true, 2, 2, false])
  })

  it('are written though it is paused by then', async () => {
    const { loop, deliver, settle, calls, commits, answers, turn } = looping()
    deliver('a')
    await settle()
    calls[0]?.end()
    await turn()
    answers.push({ outcome: 'paused', pause: { reason: 'a test', at: 0 } })
    await loop.finish()
    expect(commits.filter(({ counts, evenPaused }) => counts.applied === 1 && evenPaused)).toHaveLength(1)
    expect(loop.hasUnwritten).toBe(false)
  })

  it('do not end because the lease could not be renewed once', async () => {
    const { loop, deliver, settle, calls, applied, desk, runtime, turn, logged } = looping()
    deliver('a')
    await settle()
    const finished = loop.finish()
    Object.assign(desk.parts.store.subscriptions, { renew: () => Promise.reject(new Error('away')) })
    await runtime.advance(leaseMs)
    expect(logged.length).toBeGreaterThan(0)
    calls[0]?.end()
    await turn()
    await finished
    expect(applied()).toBe(1)
  })

  it('are none when the partition is somebody else’s meanwhile', async () => {
    const { loop, deliver, settle, applied, lease, runtime } = looping()
    deliver('a')
    await settle()
    const finished = loop.finish()
    lease.isRenewed = false
    await runtime.advance(leaseMs)
    await finished
    expect(applied()).toBe(0)
  })

  it('let a lane flow of which the last letter is over', async () => {
    const { loop, settle, calls, commits, turn } = looping({ held: [heldLane('a')], queues: { a: 1 } })
    await settle()
    expect(calls).toHaveLength(1)
    calls[0]?.end()
    await turn()
    expect(loop.hasUnwritten).toBe(true)
    await loop.finish()
    expect(commits.flatMap(({ lanes }) => lanes)).toEqual([{ lane: 'a', hold: undefined, done: undefined }])
  })
})

import { describe, expect, it } from 'vitest'
import { createDeskOf, type DeskSetup, heldLane, taskOf } from '../../../test/handler-state.ts'
import { definePolicy, failure, fixed, pause, retry } from '../../index.ts'
import { type Checkpoint, noCounts } from '../../subscription/checkpoint.ts'
import type { Commit, CommitOutcome } from '../../subscription/subscription-store.ts'
import { Ownership } from '../ownership/ownership.ts'
import type { HandlerLoopParts } from './handler-state.ts'
import { HandlerLoop } from './handler-loop.ts'

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
  const { parts, handler, partition } = made.handlerState
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
    outcomeReporter: { tell: () => undefined },
    fenced: () => undefined,
    enter: ({ state }: { readonly state: string }) => void states.push(state),
  })
  const ownership = new Ownership(parts, new AbortController().signal, () => undefined)
  const checkpoint = { start: 0, position: 0, commits: 0, counts: noCounts() } as unknown as Checkpoint
  ownership.load({ checkpoint, pause: undefined } as never)
  ownership.lease = { subscription: 'notify', partition: 0, owner: 'o', epoch: 1 }
  Object.assign(parts, { ownership, ...more })
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
  return { ...made, loop, calls, commits, states, answers, ownership, lease: script, deliver, turn, settle, applied }
}

const patient = definePolicy({ transient: retry({ attempts: 9, backoff: fixed('200ms') }), outage: false })

/** After a death: the first two of the source may have killed. */
const inherited = {
  isInherited: true,
  state: { checkpoint: { position: 0 }, marks: [], trials: [{ position: -1, instance: 'dead' }], tried: 2 },
  end: 2,
} as never

/** One is done, and the store does not have that yet, though it has rested. */
async function doneUnwritten() {
  const made = looping()
  made.deliver('a')
  await made.settle()
  made.calls[0]?.end()
  await made.turn()
  await made.runtime.advance(50)
  return made
}

describe('a loop', () => {
  it('says what may be begun before it begins, and commits what was done', async () => {
    const { loop, deliver, settle, calls, commits, turn, applied, told, runtime, ownership, states } = looping()
    deliver('a', 'b')
    expect(loop.standing()).toEqual({ state: 'catching-up' })
    expect(await settle()).toBe('idle')
    expect(calls).toHaveLength(2)
    expect(commits).toHaveLength(1)
    expect(commits[0]).toMatchObject({ to: { position: 0 }, counts: { applied: 0 } })
    expect(commits[0]?.tried).toBeGreaterThanOrEqual(2)
    expect([loop.hasUnwritten, states]).toEqual([false, ['catching-up']])
    const { wake } = told
    calls[1]?.end()
    await turn()
    expect([told.wake > wake, loop.hasUnwritten]).toEqual([true, true])
    calls[0]?.end()
    await turn()
    await runtime.advance(50)
    expect(await settle()).toBe('idle')
    expect([applied(), loop.hasUnwritten, ownership.checkpoint?.position]).toEqual([2, false, 2])
    expect([loop.standing(), states.at(-1)]).toEqual([{ state: 'live' }, 'live'])
  })

  it('begins with the commit that says so, and not a step later', async () => {
    const { loop, deliver, calls, turn } = looping()
    deliver('a')
    expect(await loop.step()).toBe('worked')
    await turn()
    expect(calls).toHaveLength(1)
  })

  it('commits nothing for as long as there is nothing', async () => {
    const { settle, commits, runtime } = looping()
    await settle()
    await runtime.advance(5_000)
    expect([await settle(), commits]).toEqual(['idle', []])
  })

  it('begins nothing any more when it was abandoned', async () => {
    const { loop, deliver, calls, settle } = looping()
    deliver('a')
    loop.abandon()
    await settle()
    expect(calls).toHaveLength(0)
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

  it('is due while the letters of a lane whose time has come are on their way', async () => {
    const { loop, handlerState, settle } = looping({ held: [heldLane('a', { dueAt: 0 })], queues: { a: 1 } })
    const { letters } = handlerState.parts.store
    const gate = Promise.withResolvers<void>()
    const queues = letters.queues.bind(letters)
    let asked = 0
    const late = async (...args: Parameters<typeof queues>) => {
      asked++
      await gate.promise
      return queues(...args)
    }
    Object.assign(letters, { queues: late })
    const settled = settle()
    await handlerState.parts.runtime.timers.yield()
    expect([asked, loop.isDue]).toEqual([1, true])
    gate.resolve()
    await settled
    expect(loop.isDue).toBe(true)
  })

  it('is due until the store has what became of a lane', async () => {
    const { loop, handlerState, settle, calls, turn } = looping({
      held: [heldLane('a', { dueAt: 0 })],
      queues: { a: 1 },
    })
    await settle()
    const { subscriptions } = handlerState.parts.store
    const gate = Promise.withResolvers<void>()
    const commit = subscriptions.commit.bind(subscriptions)
    let sent = 0
    const late = async (one: Commit) => {
      sent++
      await gate.promise
      return commit(one)
    }
    Object.assign(subscriptions, { commit: late })
    calls[0]?.end()
    await turn()
    const settled = settle()
    await turn()
    // It is on its way to the store: the lane is neither being tried nor due.
    expect([sent, loop.isDue]).toEqual([1, true])
    gate.resolve()
    await settled
    expect(loop.isDue).toBe(false)
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
    const { loop, ownership, lease, runtime } = looping()
    lease.isRenewed = false
    await runtime.advance(leaseMs / 3)
    expect(await loop.step()).toBe('lost')
    expect(ownership.lease).toBeUndefined()
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
    const { loop, settle, answers, commits } = await doneUnwritten()
    answers.push('away')
    await expect(loop.step()).rejects.toThrow('took the store away')
    expect(loop.hasUnwritten).toBe(true)
    expect(await settle()).toBe('idle')
    expect([commits.length, loop.hasUnwritten]).toEqual([3, false])
  })
})

describe('a commit of which the end is not known', () => {
  /** Something was done, and the store went away while it was written down. */
  async function inDoubt() {
    const made = await doneUnwritten()
    const { loop, deliver, answers } = made
    answers.push('away')
    await expect(loop.step()).rejects.toThrow('took the store away')
    deliver('b')
    loop.appended()
    const read = made.reads.length
    return { ...made, read, before: made.commits.length }
  }
  const takenOver = async () => ({ epoch: 2, owner: 'other', checkpoint: { commits: 1 } })

  it('is the last, and nothing is read any more, where the partition is somebody else’s', async () => {
    const { loop, handlerState, commits, before, reads, read } = await inDoubt()
    Object.assign(handlerState.parts.store.subscriptions, { load: takenOver })
    expect(await loop.step()).toBe('lost')
    expect([commits.length, reads.length]).toEqual([before, read])
  })

  it('is the last of one that is paused, or stops, too', async () => {
    const paused = await inDoubt()
    Object.assign(paused.handlerState.parts.store.subscriptions, { load: takenOver })
    paused.ownership.pause = { reason: 'a test', at: 0 }
    expect(await paused.loop.step()).toBe('lost')
    const stopped = await inDoubt()
    Object.assign(stopped.handlerState.parts.store.subscriptions, { load: takenOver })
    await stopped.loop.finish()
    expect([paused.commits.length, stopped.commits.length]).toEqual([paused.before, stopped.before])
  })

  it('comes before everything else, and nothing is read while it is paused by then', async () => {
    const { loop, answers, reads, read } = await inDoubt()
    answers.push({ outcome: 'paused', pause: { reason: 'a test', at: 0 } })
    expect(await loop.step()).toBe('paused')
    expect(reads).toHaveLength(read)
  })
})

describe('a source that is away', () => {
  /** One is done, and not written down; then the source can not be read. */
  async function away() {
    const made = await doneUnwritten()
    made.script.isDown = true
    made.loop.appended()
    return { ...made, told: made.states.length }
  }

  it('is told each time, and what was done is kept, with no word that all goes well', async () => {
    const { loop, applied, states, told, script, deliver, settle, calls, turn, runtime } = await away()
    for (const _ of ['with something to commit', 'and with nothing'])
      await expect(loop.step()).rejects.toMatchObject({ message: 'The test took the source away.' })
    expect([applied(), states.length]).toEqual([1, told])
    deliver('b')
    script.isDown = false
    expect(await settle()).toBe('idle')
    expect(calls).toHaveLength(2)
    calls[1]?.end()
    await turn()
    await runtime.advance(50)
    await settle()
    expect(states.slice(told)).toEqual(['live'])
  })

  it('is not told by one that finds out that it is paused, or is not the owner', async () => {
    for (const [outcome, step] of [
      [{ outcome: 'paused', pause: { reason: 'a test', at: 0 } }, 'paused'],
      [{ outcome: 'fenced', epoch: 2, owner: 'other' }, 'lost'],
    ] as const) {
      const { loop, answers } = await away()
      answers.push(outcome)
      expect(await loop.step()).toBe(step)
    }
  })
})

describe('while it is paused', () => {
  it('begins nothing, and keeps what was done', async () => {
    const { loop, deliver, settle, calls, ownership, turn, applied } = looping()
    deliver('a', 'b')
    await settle()
    ownership.pause = { reason: 'a test', at: 0 }
    calls[0]?.end()
    await turn()
    deliver('c')
    loop.appended()
    expect(await settle()).toBe('paused')
    expect([applied(), calls.length]).toEqual([1, 2])
    expect(loop.restMs()).toBe(leaseMs / 3)
    ownership.pause = undefined
    await settle()
    expect(calls).toHaveLength(3)
  })

  it('rests, whatever is due', async () => {
    const { loop, settle, ownership } = looping({ held: [heldLane('a', { dueAt: 0 })], queues: { a: 1 } })
    ownership.pause = { reason: 'a test', at: 0 }
    expect(await settle()).toBe('paused')
    expect([loop.isDue, loop.restMs()]).toEqual([true, leaseMs / 3])
  })

  it('nobody is on trial: who was about to be is taken back', async () => {
    const { loop, deliver, handlerState, commits, answers, ownership, turn } = looping({}, inherited)
    const { exclusiveRun } = handlerState.parts
    deliver('a', 'b')
    await loop.step()
    answers.push('away')
    await expect(loop.step()).rejects.toThrow('took the store away')
    expect(commits.at(-1)?.trial).toMatchObject({ position: 1 })
    expect(exclusiveRun.begin({ wake: () => undefined })).toBe(false)
    ownership.pause = { reason: 'a test', at: 0 }
    expect(await loop.step()).toBe('paused')
    await turn()
    expect(exclusiveRun.begin({ wake: () => undefined })).toBe(true)
    expect(commits.at(-1)?.trial).toBeUndefined()
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
      definition: { failure: patient },
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

  it('is not over at once for what has no room: the end of what runs wakes it', async () => {
    const again = looping({ definition: { concurrency: 1, failure: patient } })
    again.deliver('a', 'b')
    await again.settle()
    again.calls[0]?.end(failure.transient('not now'))
    await again.turn()
    await again.settle()
    expect(again.calls).toHaveLength(2)
    await again.runtime.advance(500)
    await again.settle()
    expect(again.loop.restMs()).toBeGreaterThan(0)

    const lanes = looping({
      held: ['a', 'b'].map((lane) => heldLane(lane, { dueAt: 0 })),
      queues: { a: 1, b: 1 },
      definition: { concurrency: 1 },
    })
    await lanes.settle()
    expect([lanes.calls.length, lanes.loop.isDue]).toEqual([1, true])
    expect(lanes.loop.restMs()).toBeGreaterThan(0)
  })

  it('is not over at once while a probe may be made and another one still runs, or none is there that may begin', async () => {
    const policy = definePolicy({ dependency: pause({ failures: 1, for: '300ms' }), outage: false })
    const running = looping({ definition: { failure: policy } })
    running.deliver('a', 'b')
    await running.settle()
    running.calls[0]?.end(failure.dependency('the bank'))
    await running.turn()
    await running.settle()
    await running.runtime.advance(300)
    await running.settle()
    expect([running.loop.standing().state, running.loop.restMs() > 0]).toEqual(['blocked', true])

    const { calls, settle, runtime, loop, script, turn } = looping({
      held: [heldLane('a', { status: 'parked' })],
      queues: { a: 1 },
      tasks: [taskOf('a', { rate: 1 })],
      definition: { failure: policy },
    })
    await loop.step()
    script.tasks = []
    await settle()
    expect(calls).toHaveLength(1)
    calls[0]?.end(failure.dependency('the bank'))
    await turn()
    await settle()
    expect(loop.restMs()).toBe(300)
    await runtime.advance(300)
    await settle()
    expect([calls.length, loop.restMs()]).toEqual([1, 700])
  })

  it('is over when the next probe may be made, also where the one before has stepped aside', async () => {
    const policy = definePolicy({ dependency: pause({ failures: 1, for: '300ms' }), outage: false })
    const { loop, settle, calls, turn, runtime } = looping({
      held: [heldLane('a', { dueAt: 0 })],
      queues: { a: 1 },
      definition: { failure: policy },
    })
    for (const i of [0, 1]) {
      await settle()
      expect(calls).toHaveLength(i + 1)
      calls[i]?.end(failure.dependency('the bank'))
      await turn()
      await settle()
      expect(loop.restMs()).toBe(300)
      await runtime.advance(300)
    }
    await settle()
    expect(calls).toHaveLength(3)
  })

  it('is over when a redrive that must go slowly may go on', async () => {
    const { loop, settle, runtime } = looping({
      held: ['a', 'b'].map((lane) => heldLane(lane, { status: 'parked' })),
      queues: { a: 2, b: 1 },
      tasks: ['a', 'b'].map((lane) => taskOf(lane, { rate: 1 })),
    })
    await runtime.advance(1_000)
    expect(await settle()).toBe('idle')
    expect(loop.restMs()).toBe(50)
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
    loop.restMs()
    const { wake } = told
    calls[0]?.end()
    await turn()
    expect(told.wake).toBe(wake + 1)
    expect(await loop.step()).toBe('idle')
    expect([commits.length, loop.restMs()]).toEqual([begun, 40])
    // The time for it is set: who ends meanwhile wakes nobody.
    calls[1]?.end()
    await turn()
    expect(told.wake).toBe(wake + 1)
    await runtime.advance(40)
    await settle()
    expect([commits.length, applied()]).toEqual([begun + 1, 2])
  })

  it('wakes it all the same when something is to be tried again before that', async () => {
    for (const [ms, wakes] of [
      [20, 1],
      [40, 0],
    ] as const) {
      const policy = definePolicy({ transient: retry({ attempts: 9, backoff: fixed(ms) }), outage: false })
      const { loop, deliver, settle, calls, turn, lease, told } = looping({ definition: { failure: policy } })
      lease.takesMs = 5
      deliver('a', 'b')
      await settle()
      calls[0]?.end()
      await turn()
      await loop.step()
      expect(loop.restMs()).toBe(40)
      const { wake } = told
      calls[1]?.end(failure.transient('not now'))
      await turn()
      expect(told.wake - wake).toBe(wakes)
    }
  })

  it('is written at once where the trial of one is over, which everybody waits for', async () => {
    const { loop, deliver, settle, calls, commits, turn, lease } = looping({}, inherited)
    lease.takesMs = 5
    deliver('a', 'b')
    for (const i of [0, 1]) {
      await settle()
      calls[i]?.end()
      await turn()
    }
    const before = commits.length
    expect(await loop.step()).toBe('worked')
    expect([commits.length, commits.at(-1)?.endedTrials]).toEqual([before + 1, expect.arrayContaining([2, -1])])
  })

  describe('and left out', () => {
    /** Something is to be read meanwhile, and the store rests. */
    async function skipped(order: 'key' | 'partition', keys: readonly string[], later: readonly string[] = ['z']) {
      const made = looping({ definition: { order } })
      const { loop, deliver, settle, calls, turn, lease } = made
      lease.takesMs = 5
      deliver(...keys)
      await settle()
      calls[0]?.end(failure.skip('not needed'))
      await turn()
      deliver(...later)
      loop.appended()
      const [read, before] = [made.reads.length, made.commits.length]
      const step = await loop.step()
      return { step, read: made.reads.length - read, committed: made.commits.length - before }
    }

    it('is in the store before anything more is read where the order of the partition is kept', async () => {
      expect(await skipped('partition', ['a'])).toEqual({ step: 'worked', read: 0, committed: 1 })
    })

    it('is written at once if somebody waits behind it, and nothing else runs', async () => {
      expect(await skipped('key', ['a', 'a'], [])).toEqual({ step: 'worked', read: 1, committed: 1 })
    })

    it('keeps nobody behind it any longer when the store has that', async () => {
      const { deliver, settle, calls, turn } = looping()
      deliver('a', 'a')
      await settle()
      calls[0]?.end(failure.skip('not needed'))
      await turn()
      await settle()
      expect(calls).toHaveLength(2)
    })

    it('waits for more if nobody does, or others run', async () => {
      expect(await skipped('key', ['a'], [])).toEqual({ step: 'idle', read: 1, committed: 0 })
      expect(await skipped('key', ['a', 'b', 'a'])).toEqual({ step: 'idle', read: 1, committed: 0 })
    })

    it('by a redrive is in the store before anything more is read', async () => {
      const { loop, deliver, settle, reads, script, commits, calls, lease } = looping({
        held: [heldLane('a', { status: 'parked' })],
        queues: { a: 1 },
      })
      lease.takesMs = 5
      deliver('b')
      await settle()
      calls[0]?.end()
      script.tasks = [taskOf('a', { act: 'discard' })]
      loop.redriven()
      deliver('a')
      loop.appended()
      const [read, before] = [reads.length, commits.length]
      expect(await loop.step()).toBe('worked')
      expect([reads.length, commits.length]).toEqual([read, before + 1])
      script.tasks = []
      await settle()
      expect(reads.length).toBeGreaterThan(read)
    })
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
    const { loop, handlerState, commits, ownership, runtime, told, settle } = looping()
    await runtime.advance(1_000)
    await settle()
    ownership.committedAt = 1_000
    const before = commits.length
    handlerState.parts.source.read = async () => ({ events: [], through: 10, isEnd: true })
    loop.appended()
    const { changed } = told
    expect(await settle()).toBe('idle')
    expect([ownership.seen, ownership.checkpoint?.position, commits.length, told.changed]).toEqual([
      10,
      0,
      before,
      changed + 1,
    ])
    expect(loop.restMs()).toBe(1_000)
    await runtime.advance(999)
    await settle()
    expect([commits.length, told.changed]).toEqual([before, changed + 1])
    await runtime.advance(1)
    await settle()
    expect([commits.length, ownership.checkpoint?.position]).toEqual([before + 1, 10])
    expect(loop.restMs()).toBe(leaseMs / 3)
  })
})

describe('after a death', () => {
  it('is suspicious until all that may have killed has its outcome', async () => {
    const { loop, deliver, settle, calls, commits, turn, runtime } = looping({}, inherited)
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

  /**
   * The first of two that are suspected is on trial. `goOn`: it waits for its next try, the second is through, and a third runs, which is
   * nobody's suspect.
   */
  async function onTrial() {
    const made = looping({ definition: { failure: patient } }, inherited)
    const { deliver, settle, calls, turn } = made
    deliver('a', 'b')
    await settle()
    expect(calls).toHaveLength(1)
    const goOn = async () => {
      calls[0]?.end(failure.transient('not now'))
      await turn()
      await settle()
      calls[1]?.end()
      await turn()
      deliver('c')
      await settle()
      expect(calls).toHaveLength(3)
    }
    return { ...made, goOn }
  }

  it('reads nothing while one is on trial, or about to be', async () => {
    const { loop, goOn, calls, reads, turn, runtime } = await onTrial()
    const readsMore = async () => {
      const { length } = reads
      loop.appended()
      await loop.step()
      return reads.length > length
    }
    expect(await readsMore()).toBe(false)
    await goOn()
    expect(await readsMore()).toBe(true)
    await runtime.advance(200)
    expect([await readsMore(), calls.length]).toEqual([true, 3])
    calls[2]?.end()
    await turn()
    expect(await readsMore()).toBe(false)
    await turn()
    expect(calls).toHaveLength(4)
  })

  it('nobody is alone while the source is asked, which may take its time', async () => {
    const { loop, goOn, calls, turn, runtime, handlerState } = await onTrial()
    const { exclusiveRun } = handlerState.parts
    const isFree = () => {
      const begins = exclusiveRun.begin({ wake: () => undefined })
      if (begins) exclusiveRun.end()
      return begins
    }
    expect(isFree()).toBe(false)
    await goOn()
    await runtime.advance(200)
    let answer = () => {}
    handlerState.parts.source.read = () =>
      new Promise((resolve) => (answer = () => resolve({ events: [], through: 3, isEnd: true })))
    loop.appended()
    const step = loop.step()
    await turn()
    calls[2]?.end()
    await turn()
    expect(isFree()).toBe(true)
    answer()
    await step
    await turn()
    expect(isFree()).toBe(false)
  })

  it('is suspicious still while a gap in the log hides what may have killed', async () => {
    const { loop, deliver, settle, calls, commits } = looping({}, inherited)
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
    const { loop, settle } = looping({ foreign: true }, inherited)
    await settle()
    expect(loop.isSuspect).toBe(false)
  })

  it('is suspicious still who only works off letters, and can not tell', async () => {
    const { loop, settle } = looping({ foreign: true, only: 'letters' }, inherited)
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
    const { loop, deliver, settle, calls, applied, handlerState, runtime, turn, logged } = looping()
    deliver('a')
    await settle()
    const finished = loop.finish()
    Object.assign(handlerState.parts.store.subscriptions, { renew: () => Promise.reject(new Error('away')) })
    await runtime.advance(leaseMs)
    expect(logged.length).toBeGreaterThan(0)
    calls[0]?.end()
    await turn()
    await finished
    expect(applied()).toBe(1)
  })

  it('are none when the partition is somebody else’s meanwhile', async () => {
    const { loop, deliver, settle, commits, lease, runtime } = looping()
    deliver('a')
    await settle()
    const before = commits.length
    const finished = loop.finish()
    lease.isRenewed = false
    await runtime.advance(leaseMs)
    await finished
    expect(commits).toHaveLength(before)
  })

  it('end the suspicion, if what is under way is the last that was suspected', async () => {
    const { loop, deliver, settle, calls, commits, turn } = looping({}, inherited)
    deliver('a', 'b')
    await settle()
    calls[0]?.end()
    await turn()
    await settle()
    const finished = loop.finish()
    calls[1]?.end()
    await turn()
    await finished
    expect([calls.length, loop.isSuspect]).toEqual([2, false])
    expect(commits.flatMap(({ endedTrials = [] }) => endedTrials)).toEqual(expect.arrayContaining([1, 2, -1]))
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

import { describe, expect, it } from 'vitest'
import type { HeldLane } from '../../src/dead-letter/letter.ts'
import { describeFailure } from '../../src/failure/failure.ts'
import type { Commit } from '../../src/subscription/subscription-store.ts'
import { breakerOf, type StepsSettings } from './steps.ts'
import { swarmOf } from './swarm.ts'
import { Tries } from './tries.ts'
import type { Begun, Known, Ownership } from './walk.ts'

const known = ['a', 'b', 'c', 'd'].map(
  (lane, i): Known => ({ id: `${lane}-1`, position: i + 1, lane, partition: 0, flaw: 'none' }),
)
const [a, b, c, d] = known as [Known, Known, Known, Known]
const settings = { ...swarmOf(1).steps, attempts: 3, breaker: false }
const down = describeFailure(new Error('down'), 'transient', 'network')

/** Somebody who has seen nothing yet, and what happens to the handler from there on. */
function watched(other: Partial<StepsSettings> = {}) {
  const set = { ...settings, stops: 'never', ...other } as const
  const tries = new Tries(set, known)
  let [ownership, number, atMs]: [Ownership | undefined, number, number] = [undefined, 0, 0]
  const commit = (event: Known | undefined, status: HeldLane['status'], count: number, failed: boolean) => {
    const { position = 0, lane = '' } = event ?? {}
    const hold = { lane, status, since: 0, done: undefined, head: 1, headPosition: position, tries: count }
    const letters = failed ? [{ change: 'failed', position, status, failure: down }] : []
    const written = { held: [], letters, lanes: event ? [{ lane, hold, done: undefined }] : [] }
    tries.committed(written as unknown as Commit, ownership as Ownership)
  }
  const attempt = (event: Known, how: 'done' | 'transient', why?: string) => {
    atMs += 1_000
    const begun: Begun = { number: ++number, event, ownership, atMs }
    tries.begun(begun)
    tries.ended(begun, { subscription: 'calls', number, id: event.id, how, why }, atMs)
  }
  return {
    tries,
    claim: (who: string, epoch: number) => {
      ownership = { who, partition: 0, epoch }
      tries.claimed(ownership)
    },
    fail: (event: Known) => attempt(event, 'transient', 'down'),
    succeed: (event: Known) => attempt(event, 'done'),
    retries: (event: Known, count: number) => commit(event, 'retrying', count, true),
    givesBack: (event: Known) => commit(event, 'retrying', 0, false),
    parks: (event: Known, count = 3) => commit(event, 'parked', count, true),
    commits: () => commit(undefined, 'retrying', 0, false),
    /** The breaker of a lane, as whoever has the partition leaves it. */
    saves: ({ lane }: Known, probes: number) => {
      const name = breakerOf(set, lane) as string
      const record = JSON.stringify({ state: 'half-open', probes: Array.from({ length: probes }, () => ({})) })
      tries.saved((ownership as Ownership).who, { name, record })
    },
  }
}

/** Two of three tries are used up when the others fail alike: that was an outage, and nobody's fault. */
function outage() {
  const world = watched()
  world.claim('one', 1)
  world.fail(a)
  world.retries(a, 1)
  world.fail(a)
  world.retries(a, 2)
  world.fail(b)
  world.fail(c)
  return world
}

const tooSoon = ['I11 a-1 was parked after 1 failures, and has 3 tries']

describe('what an outage gives back', () => {
  it('does not count any more for whoever gave it back', () => {
    const world = outage()
    world.parks(a)
    expect(world.tries.problems).toEqual(['I11 a-1 was parked after 0 failures, and has 3 tries'])
  })

  it.for([0, 1])('counts again when it was not written down before a death, after %i commits', (commits) => {
    const world = outage()
    for (let i = 0; i < commits; i++) world.commits()
    world.claim('two', 2)
    world.fail(a)
    world.parks(a)
    expect(world.tries.problems).toEqual([])
  })

  it('does not count again when it was written down', () => {
    const world = outage()
    world.givesBack(a)
    world.claim('two', 2)
    world.fail(a)
    world.parks(a)
    expect(world.tries.problems).toEqual(tooSoon)
  })

  it('does not count again when it should have been written down', () => {
    const world = outage()
    world.commits()
    world.commits()
    world.claim('two', 2)
    world.fail(a)
    world.parks(a)
    expect(world.tries.problems).toEqual(tooSoon)
  })
})

describe('a policy that pauses', () => {
  const tooSoonFor = ({ id }: Known) => [`I11 ${id} was parked after 0 failures, and has 3 tries`]
  it.for([
    ['gives nothing back when it paused before there were several', [a, b, a, c, undefined, a], a, []],
    ['gives it back when the one that makes it pause is one of several', [a, b, c], a, tooSoonFor(a)],
    ['gives it back when what failed before was answered', [a, a, undefined, b, c, d], b, tooSoonFor(b)],
  ] as const)('%s', ([, failing, parked, problems]) => {
    const world = watched({ stops: 'pause' })
    world.claim('one', 1)
    for (const event of failing) {
      if (event) world.fail(event)
      else world.succeed(d)
    }
    world.parks(parked, 2)
    expect(world.tries.problems).toEqual(problems)
  })
})

describe('what a breaker asks', () => {
  it.for([
    ['counts for no event', 0, ['I10 a-1 in partition 0 failed 0 times, and 1 count against it']],
    ['counts as what it is when the probe was given back before', 1, []],
  ] as const)('%s', ([, givenBack, problems]) => {
    const world = watched({ breaker: true })
    world.claim('one', 1)
    world.saves(a, 1)
    if (givenBack) world.saves(a, 0)
    world.fail(a)
    world.retries(a, 1)
    expect(world.tries.problems).toEqual(problems)
  })
})

describe('the time and the number of an attempt', () => {
  const beginning = Date.UTC(2026, 0, 1)
  const set = { ...settings, stops: 'never', order: 'key', flaws: [] } as const
  const ownership: Ownership = { who: 'one', partition: 0, epoch: 1 }

  /** An owner that has time for everything, and a clock to the millisecond. */
  function timed() {
    const tries = new Tries(set, known, true)
    let number = 0
    tries.claimed(ownership, { isInherited: false }, 0)
    const attempt = (event: Known, atMs: number, how: 'done' | 'transient', told?: number) => {
      const begun: Begun = { number: ++number, event, ownership, atMs, attempt: told }
      tries.begun(begun)
      tries.ended(begun, { subscription: 'calls', number, id: event.id, how, why: 'down' }, atMs)
    }
    const commit = (part: Partial<Commit>, atMs: number) =>
      tries.committed({ held: [], letters: [], lanes: [], ...part } as unknown as Commit, ownership, atMs)
    return {
      tries,
      attempt,
      /** With as many failures as it says, to be tried again at a time. */
      retries: ({ lane, position }: Known, failures: number, dueMs: number, count: number, atMs: number) => {
        const hold = { lane, status: 'retrying', since: 0, done: undefined, head: 1, headPosition: position } as const
        const change = { change: 'failed', position, status: 'retrying', failure: down } as const
        const letters = Array.from({ length: failures }, () => change)
        commit(
          { letters, lanes: [{ lane, hold: { ...hold, tries: count, dueAt: beginning + dueMs }, done: undefined }] },
          atMs,
        )
      },
    }
  }

  it.for([
    ['on time', 1_400, []],
    ['after the first delay again', 1_250, ['I11 a-1 was begun at 1250 ms by one, 250 ms after it failed']],
  ] as const)('is known: the second retry is begun %s', ([, atMs, problems]) => {
    const { tries, attempt } = timed()
    attempt(a, 700, 'transient')
    attempt(a, 1_000, 'transient')
    attempt(a, atMs, 'done')
    expect(tries.problems).toEqual(problems)
    expect(tries.timed).toBeGreaterThan(0)
  })

  it.for([
    ['what its policy says', 1_400, []],
    ['too early', 1_200, ['I11 a-1 is due -200 ms off what its policy says after 2 failures']],
    ['too late', 2_000, ['I11 a-1 is due 600 ms off what its policy says after 2 failures']],
  ] as const)('is known: the time it is due is %s', ([, dueMs, problems]) => {
    const { tries, attempt, retries } = timed()
    attempt(a, 700, 'transient')
    attempt(a, 1_000, 'transient')
    retries(a, 2, dueMs, 2, 1_001)
    expect(tries.problems).toEqual(problems)
  })

  it.for([
    ['soon', 1_250, []],
    ['long after it was due', 2_000, ['I11 a-1 was begun by one, 800 ms after it was due']],
  ] as const)('is known: with nothing else to do, an owner begins it %s', ([, atMs, problems]) => {
    const { tries, attempt, retries } = timed()
    attempt(a, 1_000, 'transient')
    retries(a, 1, 1_200, 1, 1_001)
    attempt(a, atMs, 'done')
    expect(tries.problems).toEqual(problems)
    expect(tries.punctual).toBe(1)
  })

  it('is counted from the claim of an owner that came after it was due', () => {
    const { tries, attempt, retries } = timed()
    attempt(a, 1_000, 'transient')
    retries(a, 1, 1_200, 1, 1_001)
    const next: Ownership = { who: 'two', partition: 0, epoch: 2 }
    tries.claimed(next, { isInherited: false }, 6_000)
    tries.begun({ number: 99, event: a, ownership: next, atMs: 6_010 })
    expect(tries.problems).toEqual([])
  })

  it('is excused where a call to the store was lost', () => {
    const { tries, attempt, retries } = timed()
    attempt(a, 1_000, 'transient')
    retries(a, 1, 1_200, 1, 1_001)
    tries.lost('one', 'letters.queues', 1_200)
    attempt(a, 6_000, 'done')
    expect(tries.problems).toEqual([])
  })

  it.for([
    ['all that failed is recorded', 2, []],
    ['one of them is not recorded', 1, ['I11 a-1 failed 2 times in one, and 1 are recorded']],
    ['more is recorded than failed', 3, ['I11 a-1 failed 2 times in one, and 3 are recorded']],
  ] as const)('is known: %s', ([, recorded, problems]) => {
    const { tries, attempt, retries } = timed()
    attempt(a, 700, 'transient')
    attempt(a, 1_000, 'transient')
    retries(a, recorded, 1_400, 2, 1_001)
    expect(tries.problems).toEqual(problems)
    expect(tries.compared).toBe(1)
  })

  it.for([
    ['the number of it', 2, []],
    ['the number of the one before', 1, ['attempt 1, after 1 attempts, 1 of them recorded']],
    ['a number that counts what was not tried', 3, ['attempt 3, after 1 attempts, 1 of them recorded']],
  ] as const)('is known: a handler is told %s', ([, told, problems]) => {
    const { tries, attempt, retries } = timed()
    attempt(a, 1_000, 'transient', 1)
    retries(a, 1, 1_200, 1, 1_001)
    attempt(a, 1_201, 'done', told)
    expect(tries.problems).toEqual(problems.map((problem) => `I11 a-1 was begun at 1201 ms by one as ${problem}`))
  })
})

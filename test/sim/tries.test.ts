import { describe, expect, it } from 'vitest'
import type { HeldLane } from '../../src/dead-letter/letter.ts'
import { describeFailure } from '../../src/failure/failure.ts'
import type { Commit } from '../../src/subscription/subscription-store.ts'
import { breakerOf, type StepsSettings } from './steps.ts'
import { swarmOf } from './swarm.ts'
import { Tries } from './tries.ts'
import type { Begun, Known, Tenure } from './walk.ts'

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
  let [tenure, number, atMs]: [Tenure | undefined, number, number] = [undefined, 0, 0]
  const commit = (event: Known | undefined, status: HeldLane['status'], count: number, failed: boolean) => {
    const { position = 0, lane = '' } = event ?? {}
    const hold = { lane, status, since: 0, done: undefined, head: 1, headPosition: position, tries: count }
    const letters = failed ? [{ change: 'failed', position, status, failure: down }] : []
    const written = { held: [], letters, lanes: event ? [{ lane, hold, done: undefined }] : [] }
    tries.committed(written as unknown as Commit, tenure as Tenure)
  }
  const attempt = (event: Known, how: 'done' | 'transient', why?: string) => {
    atMs += 1_000
    const begun: Begun = { number: ++number, event, tenure, atMs }
    tries.begun(begun)
    tries.ended(begun, { subscription: 'calls', number, id: event.id, how, why }, atMs)
  }
  return {
    tries,
    claim: (who: string, epoch: number) => {
      tenure = { who, partition: 0, epoch }
      tries.claimed(tenure)
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
      tries.saved((tenure as Tenure).who, { name, record })
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
    ['counts for nobody', 0, ['I10 a-1 in partition 0 failed 0 times, and 1 count against it']],
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

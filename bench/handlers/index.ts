import type { Benchmark } from '../benchmark.ts'
import { openGround } from './ground.ts'
import { type Round, summarise } from './report.ts'
import { Sides } from './sides.ts'

const mostHeldLanes = 100_000

/**
 * Three questions to the loop of handlers: what it loses of the time that calls take anyway, what healthy lanes feel of those that
 * fail, and what held lanes cost the others. The two sides of each run one after the other in every round, each in a process of its
 * own.
 */
export const handlers: Benchmark = {
  summary: 'side effects: compared with bare calls, beside failing lanes, and with 100,000 held lanes',
  stores: ['sqlite', 'postgres'],
  defaults: { events: 40_000, rounds: 3 },
  run: async (settings) => {
    const { events, progress } = settings
    await using ground = await openGround(settings)
    const sizes = {
      heldLanes: Math.min(mostHeldLanes, Math.ceil(events * 2.5)),
      loadEvents: Math.ceil(events / 4),
      costEvents: events * 2,
    }
    const sides = new Sides(settings, ground, sizes)
    await sides.prepare()
    const rounds: Round[] = []
    for (let number = 1; number <= settings.rounds; number++) {
      const [ideal, io] = await inTurn(number, sides.ideal, sides.io)
      progress(`round ${number}  calls ${Math.round(io.elapsedMs)} ms, the ideal ${Math.round(ideal.elapsedMs)} ms`)
      const [healthy, failing] = await inTurn(number, sides.healthy, sides.failing)
      progress(`round ${number}  p99 ${healthy.p99Ms} ms, beside failing lanes ${failing.p99Ms} ms`)
      const [flowing, held] = await inTurn(number, sides.flowing, sides.held)
      progress(`round ${number}  ${flowing.microsPerEvent} µs an event, with held lanes ${held.microsPerEvent} µs`)
      rounds.push({ ideal, io, healthy, failing, flowing, held })
    }
    return summarise(settings, { rounds, ...sizes, facts: ground.facts })
  },
}

/** The first side affects the machine for the second, so they alternate. */
async function inTurn<A, B>(round: number, one: () => Promise<A>, other: () => Promise<B>): Promise<[A, B]> {
  if (round % 2 === 1) {
    const first = await one()
    return [first, await other()]
  }
  const first = await other()
  return [await one(), first]
}

import { inspect } from 'node:util'
import { createRandom } from 'holdfast/testing'
import type { Version } from '../postgres/binaries.ts'
import { prepareGround } from './ground.ts'
import { nemeses } from './nemeses/index.ts'
import { type Result, resultOf, unprovedBy } from './result.ts'
import { runRound } from './round.ts'
import { schedule } from './schedule.ts'
import { Tally } from './tally.ts'

export interface ChaosOptions {
  readonly engines: number
  readonly cycles: number
  readonly seed: number
  /** Of PostgreSQL. */
  readonly version?: Version
  readonly onCycle?: (tally: Tally) => void
}

const cyclesPerRound = 200
/** One cycle in so many is a kill whose take-over is measured. */
const takeoverShare = 8
/** A short run in which something never came about goes on by so many cycles at a time, up to so many times its length. */
const moreCycles = 10
const mostTimes = 4

/** Engines, writers and a server of their own, and everything that can go wrong between them. */
export async function runChaos({ engines, cycles, seed, version = 'newest', onCycle }: ChaosOptions): Promise<Result> {
  const begun = performance.now()
  const random = createRandom(seed)
  const tally = new Tally()
  let postgres: string
  {
    await using ground = await prepareGround(engines, version)
    postgres = ground.server.version
    const available = nemeses.filter(({ name, missing }) => {
      const reason = missing?.(ground)
      if (reason !== undefined) tally.skipped.add(`${name}: ${reason}`)
      return reason === undefined
    })
    const plan = schedule(available, random)
    const isOver = () =>
      tally.isEnough ||
      (tally.of('cycles') >= cycles && (unprovedBy(tally).length === 0 || tally.of('cycles') >= mostTimes * cycles))
    for (let round = 1; !isOver(); round++) {
      const count = Math.max(moreCycles, Math.min(cyclesPerRound, cycles - tally.of('cycles')))
      const takeovers = Math.ceil(count / takeoverShare)
      try {
        await runRound({
          ground,
          database: `chaos_${round}`,
          seed: seed + round,
          random,
          tally,
          takeovers,
          nemeses: Array.from({ length: count - takeovers }, () => plan.next().value),
          onCycle: () => onCycle?.(tally),
        })
      } catch (error) {
        // The run itself broke. What it found until then should be heard all the same.
        tally.problem(inspect(error))
        break
      }
    }
  }
  const seconds = Math.round(performance.now() - begun) / 1_000
  return resultOf(tally, { store: 'postgres', postgres, engines, seed, seconds })
}

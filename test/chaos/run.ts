import { inspect } from 'node:util'
import { createRandom } from 'holdfast/testing'
import { LongRun } from '../long-run.ts'
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
  /** Where it is kept how far the run has come. */
  readonly record?: string | undefined
  readonly onCycle?: (tally: Tally) => void
}

const cyclesPerRound = 200
/** One cycle in so many is a kill whose take-over is measured. */
const takeoverShare = 8
/** A short run in which something never came about goes on by so many cycles at a time, up to so many times its length. */
const moreCycles = 10
const mostTimes = 4

/** Engines, writers and a server of their own, and everything that can go wrong between them. */
export async function runChaos(options: ChaosOptions): Promise<Result> {
  const { engines, cycles, seed, version = 'newest', onCycle } = options
  const run = new LongRun(options.record, { engines, cycles, version }, new Tally().record)
  const tally = Tally.of(run.progress)
  const done = tally.of('cycles')
  const random = createRandom(seed + done)
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
          seed: seed + done + round,
          random,
          tally,
          takeovers,
          nemeses: Array.from({ length: count - takeovers }, () => plan.next().value),
          onCycle: () => onCycle?.(tally),
        })
        run.keep(tally.record)
      } catch (error) {
        // The run itself broke. What it found until then should be heard all the same.
        tally.problem(inspect(error))
        break
      }
    }
  }
  const { seconds, revisions } = run
  return resultOf(tally, { store: 'postgres', postgres, engines, seed, seconds, revisions })
}

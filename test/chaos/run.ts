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
  /** How many rounds there are at a time, each with a server of its own: most of a cycle is waiting. 1 unless you say otherwise. */
  readonly sides?: number
  /** Where it is kept how far the run has come. */
  readonly record?: string | undefined
  /** `tally`: of the round that it is in. `cycles`: of all rounds, so far. */
  readonly onCycle?: (tally: Tally, cycles: number) => void
}

const cyclesPerRound = 200
/** One cycle in so many is a kill whose take-over is measured. */
const takeoverShare = 8
/** A short run in which something never came about goes on by so many cycles at a time, up to so many times its length. */
const moreCycles = 10
const mostTimes = 4

/** Engines, writers and a server of their own, and everything that can go wrong between them. */
export async function runChaos(options: ChaosOptions): Promise<Result> {
  const { engines, cycles, seed, version = 'newest', sides = 1, onCycle } = options
  const run = new LongRun(options.record, { engines, cycles, version }, new Tally().record)
  const tally = Tally.of(run.progress)
  const done = tally.of('cycles')
  const random = createRandom(seed + done)
  const perRound = Math.min(cyclesPerRound, Math.ceil((cycles - done) / sides))
  let postgres = ''
  let rounds = 0
  let given = done
  let begun = done
  let isBroken = false
  const isOver = () =>
    isBroken ||
    tally.isEnough ||
    (given >= cycles && (unprovedBy(tally).length === 0 || tally.of('cycles') >= mostTimes * cycles))
  await Promise.all(Array.from({ length: sides }, side))
  const { seconds, revisions } = run
  return resultOf(tally, { store: 'postgres', postgres, engines, seed, seconds, revisions })

  /** One round after the other. */
  async function side(): Promise<void> {
    await using ground = await prepareGround(engines, version)
    postgres = ground.server.version
    const available = nemeses.filter(({ name, missing }) => {
      const reason = missing?.(ground)
      if (reason !== undefined) tally.skipped.add(`${name}: ${reason}`)
      return reason === undefined
    })
    const plan = schedule(available, random)
    while (!isOver()) {
      const count = Math.max(moreCycles, Math.min(perRound, cycles - given))
      const takeovers = Math.ceil(count / takeoverShare)
      const round = ++rounds
      given += count
      // Only a round that came to its end counts, with everything in it, for a run that goes on later.
      const own = new Tally()
      try {
        await runRound({
          ground,
          database: `chaos_${round}`,
          seed: seed + done + round,
          random,
          tally: own,
          takeovers,
          nemeses: Array.from({ length: count - takeovers }, () => plan.next().value),
          onCycle: () => onCycle?.(own, ++begun),
        })
      } catch (error) {
        // The run itself broke. What it found until then should be heard all the same.
        own.problem(inspect(error))
        isBroken = true
      }
      tally.merge(own.record)
      if (!isBroken) run.keep(tally.record)
    }
  }
}

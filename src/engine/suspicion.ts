import { HoldfastError } from '../errors.ts'
import { describeFailure, type Failure } from '../failure/failure.ts'
import type { Commit, Trial } from '../subscription/subscription-store.ts'

/** No event has this position, so a trial of it means the work as a whole. */
const everything = 0

/**
 * An event can kill the process that tries it: by exit, by taking all memory, by never giving the thread back. A claim of a
 * partition that was not given back is the sign of a death, also when it was handed on since, before all of that was tried again. This
 * decides how carefully to go on:
 *
 *     nobody died                    as always
 *     somebody died                  as always, but that it is tried again is recorded first
 *     and somebody died over that    one event at a time, each recorded before it begins
 *
 * So the third death is that of a process that tried one event alone (see `Solitude`), and that event is to blame; none of its
 * neighbours is. A process that lost its partition without dying takes its records back, see `SubscriptionStore.acquit`.
 *
 * All that is over when the suspects were tried. One that failed then, and is to be tried again, may be one that kills only then: it is
 * followed. It is tried alone and on record, and who died over it counts, until it has its outcome or has failed as often as that.
 */
export class Suspicion {
  #trials: readonly Trial[]
  readonly #maxDeaths: number
  readonly #instance: string
  #mode: 'none' | 'watched' | 'alone'
  /** What the store has of this process. One that is over is there until the next commit. */
  #trial: { readonly position: number; isOver: boolean } | undefined
  #mayHaveTrials = false
  /** Those of which nothing counts any more: they are parked for it, were let off, or a person has decided about them. */
  readonly #judged = new Set<number>()
  /** How often those have failed that are followed. */
  readonly #followed = new Map<number, number>()

  /** `heads` are the first of the lanes that are tried again by themselves: whoever had one of them before may have followed it. */
  constructor(
    trials: readonly Trial[],
    isInherited: boolean,
    instance: string,
    maxDeaths: number,
    heads: ReadonlySet<number> = new Set(),
  ) {
    this.#trials = trials.filter((trial) => trial.instance !== instance)
    for (const { position } of this.#trials) if (heads.has(position)) this.#followed.set(position, 0)
    this.#maxDeaths = maxDeaths
    this.#instance = instance
    const mayDieOnce = maxDeaths > 2 && this.#trials.length === 0
    this.#mode = !isInherited ? 'none' : mayDieOnce ? 'watched' : 'alone'
  }

  get isAlone(): boolean {
    return this.#mode === 'alone'
  }

  /** Whether an event is tried alone, and on record, though what else is suspected is over. */
  follows(position: number): boolean {
    return this.#mode !== 'watched' && this.#followed.has(position)
  }

  /** Whether the store may have trials of this process, which are to be taken back if it lives. */
  get mayHaveTrials(): boolean {
    return this.#mayHaveTrials
  }

  get isOver(): boolean {
    return this.#mode === 'none'
  }

  /** The one that is tried alone, as the store has it: until a commit has said that it is over, whatever else is over by then. */
  get trying(): number | undefined {
    return this.#trial?.position === everything ? undefined : this.#trial?.position
  }

  /** About to blame an event: this is what the store has by now. Whoever lives, and lost its partition, may have taken its own back since. */
  recall(position: number, trials: readonly Trial[]): void {
    const isThere = (one: Trial) =>
      trials.some((trial) => trial.position === one.position && trial.instance === one.instance)
    // Of other events it may have ended some itself, and they count all the same.
    const isElsewhere = (one: Trial) => one.position !== position && one.position !== everything
    this.#trials = this.#trials.filter((trial) => isElsewhere(trial) || isThere(trial))
  }

  /** What has to be recorded before this event may be tried; undefined when it was, or need not be. */
  trialOf(position: number): Trial | undefined {
    const isAlone = this.#mode === 'alone' || this.follows(position)
    if ((this.isOver && !isAlone) || this.deathsOver(position) !== undefined) return undefined
    const wanted = isAlone ? position : everything
    if (this.#trial?.position === wanted && !this.#trial.isOver) return undefined
    this.#mayHaveTrials = true
    return { position: wanted, instance: this.#instance }
  }

  /** It is in the store: trials that are over, and then one that begins. */
  committed({ trial, endedTrials = [], acquitted }: Pick<Commit, 'trial' | 'endedTrials' | 'acquitted'>): void {
    if (this.#trial && (acquitted !== undefined || endedTrials.includes(this.#trial.position))) this.#trial = undefined
    if (trial) this.#trial = { position: trial.position, isOver: false }
  }

  /** It has told the store that nothing is tried. */
  acquitted(): void {
    this.#trial = undefined
  }

  /**
   * How many processes died over an event, if it is the one to blame. If one died alone over another event too, they may well die of
   * something else, whatever they try; then it takes two.
   */
  deathsOver(position: number): number | undefined {
    if (this.#trials.length === 0 || this.#judged.has(position)) return undefined
    const alone = this.#trials.filter((trial) => trial.position === position).length
    const isOneOfMany = this.#trials.some((trial) => trial.position !== position && trial.position !== everything)
    if (alone < (isOneOfMany ? 2 : 1)) return undefined
    const before = 1 + this.#trials.filter((trial) => trial.position === everything).length
    return before + alone >= this.#maxDeaths ? before + alone : undefined
  }

  /** It is parked. Who lets it go after that has mended what was deadly about it: what was before does not count any more. */
  blame(position: number): void {
    this.#judged.add(position)
    this.#followed.delete(position)
  }

  /**
   * An event that was tried alone has its outcome. Gives the trials that are over; those of one that is to blame are kept until the end,
   * because they count when it comes to others.
   */
  over(position: number): readonly number[] {
    const isFollowed = this.#followed.delete(position)
    // Also one that was let off by how it failed, and is parked for that.
    const isTried = this.#mode === 'alone' || isFollowed || this.#trial?.position === position
    if (!isTried || (!this.isOver && this.deathsOver(position) !== undefined)) return []
    if (this.#trial?.position === position) this.#trial.isOver = true
    return [position]
  }

  /**
   * An event that was tried alone, or was about to be, has to wait for another try. Gives the process whose word is taken back, if there
   * is one: that others died over the event still counts, or one that fails now and then could kill for ever.
   */
  putOff(position: number): string | undefined {
    if (this.#trial?.position !== position) return undefined
    this.#trial.isOver = true
    return this.#instance
  }

  /** One that is suspected, or followed, has failed, and is to be tried again. Gives the trials that are over if it is let off. */
  failed(position: number): readonly number[] {
    const failures = (this.#followed.get(position) ?? 0) + 1
    this.#followed.set(position, failures)
    return failures < this.#maxDeaths ? [] : this.forget(position)
  }

  /** It is let off, or a person has decided about it: what was before does not count any more. Gives the trials that are over. */
  forget(position: number): readonly number[] {
    this.blame(position)
    // That somebody died over it counts when it comes to others.
    return this.#trials.some((trial) => trial.position === position) ? [position] : []
  }

  /** Whether the store has any. */
  get hasTrials(): boolean {
    return this.#trials.length > 0 || this.#trial !== undefined
  }

  /** All that the store may have, whoever began them. */
  get trials(): readonly number[] {
    const own = this.#trial ? [this.#trial.position] : []
    return [everything, ...this.#trials.map(({ position }) => position), ...own]
  }

  /** What is suspected has its outcome. Gives the trials that are over. */
  end(): readonly number[] {
    if (this.#mode === 'none') return []
    this.#mode = 'none'
    if (this.#trial) this.#trial.isOver = true
    return this.trials.filter((position) => !this.#followed.has(position))
  }
}

/** Why an event is parked that processes died over. */
export function deadly(deaths: number): Failure {
  const error = new HoldfastError('EVENT_DEADLY', `${deaths} processes died while they tried this event.`, {
    hint: 'Find out what your function does with it: it exits, takes all memory, or never gives the thread back.',
  })
  return describeFailure(error, 'permanent', 'crash')
}

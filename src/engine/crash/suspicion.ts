import { HoldfastError } from '../../errors.ts'
import { describeFailure, type Failure } from '../../failure/failure.ts'
import type { Commit, Trial } from '../../subscription/subscription-store.ts'

/** No event has this position: a trial of it means all suspects together. */
const everything = 0
/** A process killed from outside looks like one that the event killed. One death over an event that ran alone may be chance; two are not. */
const deathsAlone = 2
/** The weight of a death long after the event was started, in a process that was healthy until then. */
const lateWeight = 0.5

/**
 * An event can kill the process that tries it: the code exits, uses all memory, or never returns. A claim that was not released is the
 * sign of a death, also if other owners followed before all suspects were tried again. This class decides how carefully to continue:
 *
 *     no process died                normally
 *     one died                       normally, but a trial of all suspects is recorded first
 *     another one died over that     one event at a time, each recorded before it starts
 *
 * So the last two of `maxDeaths` processes (4) died while they tried one event alone (see `ExclusiveRun`); that event is blamed, and none of
 * its neighbours. If `maxDeaths` is 3, events are tried alone after the first death; if it is 2, one death alone is enough.
 * A process that lost its partition without dying withdraws its trials, see `SubscriptionStore.acquit`. A process that was asked to stop
 * leaves none, see `SubscriptionStore.announceStop`.
 *
 * A process that is healthy long after it started an event records that too, as a trial of all suspects beside the event. A later death
 * counts half, because a slow event is often the one that runs when the process is killed from outside.
 *
 * The suspicion ends when all suspects were tried. A suspect that failed and is to be retried may kill only at the retry, so it is
 * followed: it is tried alone and recorded, and deaths count, until it has its outcome or has failed a fixed number of times.
 */
export class Suspicion {
  #trials: readonly Trial[]
  readonly #maxDeaths: number
  readonly #instance: string
  #mode: 'none' | 'watched' | 'alone'
  /** The stored trial of this process. An ended one stays until the next commit. */
  #trial: { readonly position: number; isOver: boolean; isLate: boolean } | undefined
  #mayHaveTrials = false
  /** Events whose earlier deaths no longer count: they are parked for it, were acquitted, or an operator decided about them. */
  readonly #judged = new Set<number>()
  /** The number of failures of each followed event. */
  readonly #followed = new Map<number, number>()

  /** `heads` are the heads of lanes that are retried automatically: a previous owner may have followed one of them. */
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
    const mayDieOnce = maxDeaths > 1 + deathsAlone && this.#trials.length === 0
    this.#mode = !isInherited ? 'none' : mayDieOnce ? 'watched' : 'alone'
  }

  get isAlone(): boolean {
    return this.#mode === 'alone'
  }

  /** Whether an event is still tried alone and recorded after the suspicion has ended. */
  follows(position: number): boolean {
    return this.#mode !== 'watched' && this.#followed.has(position)
  }

  /** Whether the store may have trials of this process, which it must withdraw while it is alive. */
  get mayHaveTrials(): boolean {
    return this.#mayHaveTrials
  }

  get isOver(): boolean {
    return this.#mode === 'none'
  }

  /** The event that is stored as tried alone, until a commit ends the trial. */
  get trying(): number | undefined {
    return this.#trial?.position === everything ? undefined : this.#trial?.position
  }

  /** Takes the current trials of the store before an event is blamed. A live process that lost its partition may have withdrawn its trials. */
  recall(position: number, trials: readonly Trial[]): void {
    const isThere = (one: Trial) =>
      trials.some((trial) => trial.position === one.position && trial.instance === one.instance)
    // Trials of other events that this process ended still count.
    const isElsewhere = (one: Trial) => one.position !== position && one.position !== everything
    this.#trials = this.#trials.filter((trial) => isElsewhere(trial) || isThere(trial))
  }

  /** The trial to record before this event may be tried; undefined if it is recorded or not needed. */
  trialOf(position: number): Trial | undefined {
    const isAlone = this.#mode === 'alone' || this.follows(position)
    if ((this.isOver && !isAlone) || this.deathsOver(position) !== undefined) return undefined
    const wanted = isAlone ? position : everything
    if (this.#trial?.position === wanted && !this.#trial.isOver) return undefined
    this.#mayHaveTrials = true
    return { position: wanted, instance: this.#instance }
  }

  /** The trial to record if the event that runs alone was started long ago and the process is healthy. */
  lateTrial(): Trial | undefined {
    if (this.trying === undefined || this.#trial?.isOver || this.#trial?.isLate) return undefined
    return { position: everything, instance: this.#instance }
  }

  /** A commit ended trials and may have started one. */
  committed({ trial, endedTrials = [], acquitted }: Pick<Commit, 'trial' | 'endedTrials' | 'acquitted'>): void {
    if (this.#trial && (acquitted !== undefined || endedTrials.includes(this.#trial.position))) this.#trial = undefined
    if (trial?.position === everything && this.#trial && this.trying !== undefined) this.#trial.isLate = true
    else if (trial) this.#trial = { position: trial.position, isOver: false, isLate: false }
  }

  /** The store knows that nothing is being tried. */
  acquitted(): void {
    this.#trial = undefined
  }

  /**
   * The number of processes that died over an event, if it is to blame. If a process also died over another event alone, the cause may be
   * something else; then two deaths are needed, even if `maxDeaths` is 2.
   */
  deathsOver(position: number): number | undefined {
    if (this.#trials.length === 0 || this.#judged.has(position)) return undefined
    const alone = this.#trials.filter((trial) => trial.position === position)
    const weight = alone.reduce((sum, { instance }) => sum + (this.#isWatched(instance) ? lateWeight : 1), 0)
    const isOneOfMany = this.#trials.some((trial) => trial.position !== position && trial.position !== everything)
    if (weight < (isOneOfMany || this.#maxDeaths > deathsAlone ? deathsAlone : 1)) return undefined
    const before = 1 + this.#trials.filter((trial) => trial.position === everything && !this.#isAlone(trial)).length
    return before + weight >= this.#maxDeaths ? before + alone.length : undefined
  }

  /** Whether a process died over an event alone, and one more death is needed to blame it. */
  isHalfBlamed(position: number): boolean {
    if (this.#judged.has(position) || this.deathsOver(position) !== undefined) return false
    return this.#trials.some((trial) => trial.position === position)
  }

  #isWatched(instance: string): boolean {
    return this.#trials.some((trial) => trial.instance === instance && trial.position === everything)
  }

  #isAlone({ instance }: Trial): boolean {
    return this.#trials.some((trial) => trial.instance === instance && trial.position !== everything)
  }

  /** The event is parked. An operator who redrives it has fixed the cause, so earlier deaths no longer count. */
  blame(position: number): void {
    this.#judged.add(position)
    this.#followed.delete(position)
  }

  /**
   * An event that was tried alone has its outcome. Returns the ended trials. The trials of a blamed event are kept to the end, because they
   * count when other events are judged. See also `lateOver`.
   */
  over(position: number): readonly number[] {
    const isFollowed = this.#followed.delete(position)
    // Also an event that was acquitted by its failures and is parked for them.
    const isTried = this.#mode === 'alone' || isFollowed || this.#trial?.position === position
    if (!isTried || (!this.isOver && this.deathsOver(position) !== undefined)) return []
    if (this.#trial?.position === position) this.#trial.isOver = true
    return [position]
  }

  /** The process whose trial of all suspects ends with the outcome of an event, if there is one. */
  lateOver(position: number): string | undefined {
    return this.#trial?.position === position && this.#trial.isLate ? this.#instance : undefined
  }

  /**
   * An event that was tried alone, or was about to be, must wait for another try. Returns the process whose trial is withdrawn, if there is
   * one. Deaths of other processes over the event still count; otherwise an event that only sometimes fails could kill forever.
   */
  putOff(position: number): string | undefined {
    if (this.#trial?.position !== position) return undefined
    this.#trial.isOver = true
    return this.#instance
  }

  /** A suspected or followed event failed and is to be retried. Returns the ended trials if it is acquitted. */
  failed(position: number): readonly number[] {
    const failures = (this.#followed.get(position) ?? 0) + 1
    this.#followed.set(position, failures)
    return failures < this.#maxDeaths ? [] : this.forget(position)
  }

  /** The event is acquitted, or an operator decided about it: earlier deaths no longer count. Returns the ended trials. */
  forget(position: number): readonly number[] {
    this.blame(position)
    // Deaths over it still count when other events are judged.
    return this.#trials.some((trial) => trial.position === position) ? [position] : []
  }

  /** Whether the store has trials. */
  get hasTrials(): boolean {
    return this.#trials.length > 0 || this.#trial !== undefined
  }

  /** All stored trials, of any process. */
  get trials(): readonly number[] {
    const own = this.#trial ? [this.#trial.position] : []
    return [everything, ...this.#trials.map(({ position }) => position), ...own]
  }

  /** All suspects have their outcome. Returns the ended trials. */
  end(): readonly number[] {
    if (this.#mode === 'none') return []
    this.#mode = 'none'
    if (this.#trial) this.#trial.isOver = true
    return this.trials.filter((position) => !this.#followed.has(position))
  }
}

/** The failure of an event that is parked because processes died over it. */
export function deadly(deaths: number, subscription: string, position: number): Failure {
  const error = new HoldfastError('EVENT_DEADLY', `${deaths} processes died while they tried this event.`, {
    hint:
      'Either its function ended them (it exits, uses all memory or blocks the thread), or something outside did: the OOM killer, kill -9, ' +
      'a machine failure. In the first case, fix the function. In the second case, the event is healthy. Then redrive it: ' +
      `holdfast dlq redrive ${subscription} --letter ${position} --reason "<why>"`,
  })
  return describeFailure(error, 'permanent', 'crash')
}

import type { Failure } from '../../failure/failure.ts'
import type { Commit, PartitionState, Trial } from '../../subscription/subscription-store.ts'
import type { Asking, ExclusiveRun } from './exclusive-run.ts'
import { deadly, Suspicion } from './suspicion.ts'

export interface PageTrialsParts {
  readonly state: PartitionState
  readonly isInherited: boolean
  readonly settings: { readonly instance: string }
  readonly subscription: { readonly name: string }
  readonly exclusiveRun: ExclusiveRun
  readonly wake: () => void
}

/**
 * How carefully a projection continues after a process died. The dead process had a page in progress, so as many events as a page can
 * have are suspects: all together at first, and after another death one by one. The next owner may take smaller pages, and letters first.
 */
export class PageTrials {
  readonly #suspicion: Suspicion
  readonly #subscription: string
  readonly #exclusiveRun: ExclusiveRun
  readonly #asking: Asking
  #suspects: number
  #isBeside = false
  /** A trial was sent to the store and is not confirmed yet. */
  #isAsking = false

  constructor(parts: PageTrialsParts, maxDeaths: number, suspects: number) {
    const { state, isInherited, settings, subscription, exclusiveRun, wake } = parts
    this.#subscription = subscription.name
    this.#suspicion = new Suspicion(state.trials, isInherited, settings.instance, maxDeaths)
    this.#exclusiveRun = exclusiveRun
    this.#asking = { wake }
    this.#suspects = suspects
  }

  get isOver(): boolean {
    return this.#suspicion.isOver
  }

  /** One event at a time. */
  get isAlone(): boolean {
    return this.#suspicion.isAlone
  }

  get mayHaveTrials(): boolean {
    return this.#suspicion.mayHaveTrials
  }

  /** Whether the user's code may run now, until `dismiss`. An event that is still on trial afterwards stays alone. */
  admit(): boolean {
    if (this.#suspicion.isAlone) return this.#exclusiveRun.enter(this.#asking)
    this.#isBeside = this.#exclusiveRun.begin(this.#asking)
    return this.#isBeside
  }

  /** The user's code has ended. With `isNext` there is more to try; if that is quick, it continues immediately. */
  dismiss(isNext = false): void {
    if (this.#isBeside) this.#exclusiveRun.end()
    this.#isBeside = false
    if (this.isOnTrial) return
    if (isNext) this.#exclusiveRun.stepOut(this.#asking)
    else this.#exclusiveRun.leave(this.#asking)
  }

  /** Whether the store has, or may have, a trial. Until it ends, a death would be blamed on that event, so it runs alone. */
  get isOnTrial(): boolean {
    return this.#suspicion.trying !== undefined || this.#isAsking
  }

  /** The trial has ended, or was never stored. */
  acquitted(): void {
    this.#isAsking = false
    this.#suspicion.acquitted()
  }

  /** It does not continue soon; others need not wait for it. */
  release(): void {
    this.dismiss()
    this.#exclusiveRun.leave(this.#asking)
  }

  /** The failure of an event that must not be tried again; undefined if it may. */
  refusalOf(position: number): Failure | undefined {
    const deaths = this.#suspicion.deathsOver(position)
    return deaths === undefined ? undefined : deadly(deaths, this.#subscription, position)
  }

  /** Takes the current trials of the store, before an event is refused. */
  recall(position: number, trials: readonly Trial[]): void {
    this.#suspicion.recall(position, trials)
  }

  /** The refusal is committed as the outcome of the event. */
  blame(position: number): void {
    this.#suspicion.blame(position)
  }

  /** The trial that must be stored before an event, or the page that starts with it, may be tried. */
  trialOf(position: number): Trial | undefined {
    const trial = this.#suspicion.trialOf(position)
    this.#isAsking = trial !== undefined && this.#suspicion.isAlone
    return trial
  }

  /** The trials that end with a commit of this event's outcome, or of `events` events that start with it. */
  endedWith(position: number, events = 1): readonly number[] {
    if (this.#suspicion.isOver) return []
    return this.#suspects > events ? this.#suspicion.over(position) : this.#suspicion.trials
  }

  /** Trials that are still stored although nothing is left to try. */
  get leftOver(): readonly number[] {
    return this.#suspicion.isOver || !this.#suspicion.hasTrials ? [] : this.#suspicion.trials
  }

  committed(commit: Pick<Commit, 'trial' | 'endedTrials'>, events = 1): void {
    if (commit.trial) this.#isAsking = false
    if (this.#suspicion.isOver) return
    this.#suspicion.committed(commit)
    if (commit.trial) return
    this.#suspects -= events
    if (this.#suspects <= 0) this.#suspicion.end()
  }

  end(): void {
    this.#suspicion.end()
  }
}

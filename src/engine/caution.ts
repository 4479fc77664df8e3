import type { Failure } from '../failure/failure.ts'
import type { Commit, PartitionState, Trial } from '../subscription/subscription-store.ts'
import type { Asking, Solitude } from './solitude.ts'
import { deadly, Suspicion } from './suspicion.ts'

export interface CautionParts {
  readonly state: PartitionState
  readonly isInherited: boolean
  readonly settings: { readonly instance: string }
  readonly solitude: Solitude
  readonly wake: () => void
}

/**
 * How carefully a projection goes on after a death. Whoever died had a page at hand, so as many events as that can have are suspects:
 * as a whole at first, and after another death each by itself. Who comes next may take fewer at a time, and letters first.
 */
export class Caution {
  readonly #suspicion: Suspicion
  readonly #solitude: Solitude
  readonly #asking: Asking
  #suspects: number
  #isBeside = false
  /** The store was asked to have an event on trial, and has not said that it does. */
  #isAsking = false

  constructor({ state, isInherited, settings, solitude, wake }: CautionParts, maxDeaths: number, suspects: number) {
    this.#suspicion = new Suspicion(state.trials, isInherited, settings.instance, maxDeaths)
    this.#solitude = solitude
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

  /** Whether the user's code may run now, until `dismiss`. One that is still on trial after that stays alone. */
  admit(): boolean {
    if (this.#suspicion.isAlone) return this.#solitude.enter(this.#asking)
    this.#isBeside = this.#solitude.begin(this.#asking)
    return this.#isBeside
  }

  /** The user's code runs no more. With `isNext` there is more to try, and where that is quick it goes on at once. */
  dismiss(isNext = false): void {
    if (this.#isBeside) this.#solitude.end()
    this.#isBeside = false
    if (this.isOnTrial) return
    if (isNext) this.#solitude.stepOut(this.#asking)
    else this.#solitude.leave(this.#asking)
  }

  /** Whether the store has an event on trial, or may have. Until that is over a death would be laid at its door, so it is alone. */
  get isOnTrial(): boolean {
    return this.#suspicion.trying !== undefined || this.#isAsking
  }

  /** It is on trial no more, or never was. */
  acquitted(): void {
    this.#isAsking = false
    this.#suspicion.acquitted()
  }

  /** It does not go on, or not soon: nobody waits for it. */
  release(): void {
    this.dismiss()
    this.#solitude.leave(this.#asking)
  }

  /** Why an event is not to be tried any more, if it isn't. */
  refusalOf(position: number): Failure | undefined {
    const deaths = this.#suspicion.deathsOver(position)
    return deaths === undefined ? undefined : deadly(deaths)
  }

  /** What the store has of trials by now, before an event is refused. */
  recall(position: number, trials: readonly Trial[]): void {
    this.#suspicion.recall(position, trials)
  }

  /** It has that refusal as its outcome. */
  blame(position: number): void {
    this.#suspicion.blame(position)
  }

  /** What has to be in the store before an event, or the page that it begins, may be tried. */
  trialOf(position: number): Trial | undefined {
    const trial = this.#suspicion.trialOf(position)
    this.#isAsking = trial !== undefined && this.#suspicion.isAlone
    return trial
  }

  /** The trials that are over with a commit that has the outcome of an event, or of so many that it begins. */
  endedWith(position: number, events = 1): readonly number[] {
    if (this.#suspicion.isOver) return []
    return this.#suspects > events ? this.#suspicion.over(position) : this.#suspicion.trials
  }

  /** The trials that are there although nothing is left to be tried. */
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

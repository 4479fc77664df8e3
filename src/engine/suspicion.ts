import type { Trial } from '../subscription/subscription-store.ts'

/** No event has this position, so a trial of it means the work as a whole. */
const everything = 0

/**
 * An event can kill the process that tries it: by exit, by taking all memory, by never giving the thread back. A claim of a
 * partition that was not given back is the sign of a death, and this decides how carefully to go on:
 *
 *     nobody died                    as always
 *     somebody died                  as always, but that it is tried again is recorded first
 *     and somebody died over that    one event at a time, each recorded before it begins
 *
 * So the third death is that of a process that tried one event alone, and that event is to blame; none of its neighbours is. A
 * process that lost its partition without dying takes its records back, see `SubscriptionStore.acquit`.
 */
export class Suspicion {
  readonly #trials: readonly Trial[]
  readonly #maxDeaths: number
  readonly #instance: string
  #mode: 'none' | 'watched' | 'alone'
  #recorded: number | undefined
  #mayHaveTrials = false

  constructor(trials: readonly Trial[], isInherited: boolean, instance: string, maxDeaths: number) {
    this.#trials = trials.filter((trial) => trial.instance !== instance)
    this.#maxDeaths = maxDeaths
    this.#instance = instance
    const mayDieOnce = maxDeaths > 2 && this.#trials.length === 0
    this.#mode = !isInherited ? 'none' : mayDieOnce ? 'watched' : 'alone'
  }

  get isAlone(): boolean {
    return this.#mode === 'alone'
  }

  /** Whether the store may have trials of this process, which are to be taken back if it lives. */
  get mayHaveTrials(): boolean {
    return this.#mayHaveTrials
  }

  get isOver(): boolean {
    return this.#mode === 'none'
  }

  /** The one that is being tried alone, or is about to be. */
  get trying(): number | undefined {
    return this.#mode === 'alone' ? this.#recorded : undefined
  }

  /** What has to be recorded before this event may be tried; undefined when it was, or need not be. */
  trialOf(position: number): Trial | undefined {
    if (this.#mode === 'none') return undefined
    const wanted = this.#mode === 'alone' ? position : everything
    if (this.#recorded === wanted) return undefined
    this.#mayHaveTrials = true
    return { position: wanted, instance: this.#instance }
  }

  recorded({ position }: Trial): void {
    this.#recorded = position
  }

  /** How many processes died over an event, if it is the one to blame. */
  deathsOver(position: number): number | undefined {
    const alone = this.#trials.filter((trial) => trial.position === position).length
    if (alone === 0) return undefined
    const before = 1 + this.#trials.filter((trial) => trial.position === everything).length
    return before + alone >= this.#maxDeaths ? before + alone : undefined
  }

  /** It came to no end, and is tried again later: until then it is not to blame for anything. */
  postponed(position: number): readonly number[] {
    if (this.trying !== position) return []
    this.#recorded = undefined
    return [position]
  }

  /** It has an outcome. Should it be tried again all the same, such as when its breaker lets it, that is another trial. */
  over(position: number): readonly number[] {
    if (this.#mode !== 'alone') return []
    if (this.#recorded === position) this.#recorded = undefined
    return [position]
  }

  /** What is suspected has its outcome. Gives the trials that are over. */
  end(): readonly number[] {
    if (this.#mode === 'none') return []
    this.#mode = 'none'
    return [everything, ...this.#trials.map(({ position }) => position)]
  }
}

import type { HeldLane } from '../../dead-letter/letter.ts'
import type { Entry } from './entry.ts'
import type { Window } from './window.ts'

/**
 * The events that a previous owner may have started and died over: events it had read from the source, and letters of lanes that were due
 * or waited for a breaker. Later events are not suspects and need not wait for them.
 */
export class Suspects {
  /** The highest position of the source that may have been started. */
  readonly upTo: number
  readonly #held: ReadonlyMap<string, HeldLane>
  readonly #lanes: Set<string>
  readonly #at: number

  /** `at` is the time of the claim. */
  constructor(upTo: number, held: ReadonlyMap<string, HeldLane>, at: number) {
    this.upTo = upTo
    this.#held = held
    this.#at = at
    // Lanes that were not being tried are not suspects, also if a redrive starts them later.
    this.#lanes = new Set([...held.values()].filter((hold) => this.#wasTried(hold)).map(({ lane }) => lane))
  }

  has({ record, lane, isLetter }: Entry): boolean {
    return isLetter ? this.#hasLane(lane) : record.position <= this.upTo
  }

  /** The lane of a suspect waits for a breaker. It stays a suspect until it is tried, however long that takes. */
  wait(entry: Entry): void {
    if (this.has(entry)) this.#lanes.add(entry.lane)
  }

  /** Whether all of them have their outcome. */
  areOver(window: Window, isAtEnd: boolean): boolean {
    if ((window.through < this.upTo && !isAtEnd) || window.hasUnfinished(this.upTo)) return false
    for (const lane of this.#lanes) if (this.#hasLane(lane)) return false
    return true
  }

  /** Whether a lane is still suspect: it is not released, not parked, and has no later retry time. */
  #hasLane(lane: string): boolean {
    if (!this.#lanes.has(lane)) return false
    if (this.#wasTried(this.#held.get(lane))) return true
    this.#lanes.delete(lane)
    return false
  }

  #wasTried(hold: HeldLane | undefined): boolean {
    return hold?.status === 'waiting' || (hold?.status === 'retrying' && (hold.dueAt ?? 0) <= this.#at)
  }
}

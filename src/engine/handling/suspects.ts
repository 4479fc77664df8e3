import type { HeldLane } from '../../dead-letter/letter.ts'
import type { Entry } from './entry.ts'
import type { Window } from './window.ts'

/**
 * What an owner before may have begun, and died over: what it had read of the source, and the letters of lanes that were due or
 * waited for a breaker. What comes later is nobody's suspect, and need not wait until these are through.
 */
export class Suspects {
  /** As far as the source may have been begun. */
  readonly upTo: number
  readonly #held: ReadonlyMap<string, HeldLane>
  readonly #lanes: Set<string>
  readonly #at: number

  /** `at` is when they were taken over. */
  constructor(upTo: number, held: ReadonlyMap<string, HeldLane>, at: number) {
    this.upTo = upTo
    this.#held = held
    this.#at = at
    // Not those that nobody tried then: when a redrive begins them later, that is no death of theirs.
    this.#lanes = new Set([...held.values()].filter((hold) => this.#wasTried(hold)).map(({ lane }) => lane))
  }

  has({ record, lane, isLetter }: Entry): boolean {
    return isLetter ? this.#hasLane(lane) : record.position <= this.upTo
  }

  /** Its lane has to wait for a breaker: what may have killed is in there, and is tried when that is over, however long it takes. */
  wait(entry: Entry): void {
    if (this.has(entry)) this.#lanes.add(entry.lane)
  }

  /** Whether all of them have their outcome. */
  areOver(window: Window, isAtEnd: boolean): boolean {
    if ((window.through < this.upTo && !isAtEnd) || window.hasUnfinished(this.upTo)) return false
    for (const lane of this.#lanes) if (this.#hasLane(lane)) return false
    return true
  }

  /** Until it flows, is parked, or is to be tried at a time of which nobody knew then. */
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

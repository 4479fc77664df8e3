import type { HeldLane } from '../../dead-letter/letter.ts'
import type { Entry } from './entry.ts'
import type { Window } from './window.ts'

/**
 * What an owner before may have begun, and died over: what it had read of the source, and the letters of lanes that are tried again by
 * themselves. What comes later is nobody's suspect, and need not wait until these are through.
 */
export class Suspects {
  /** As far as the source may have been begun. */
  readonly upTo: number
  readonly #held: ReadonlyMap<string, HeldLane>
  /** How often each of them has failed since, and its process lived. */
  readonly #lanes = new Map<string, number>()
  readonly #mostFailures: number

  /**
   * `mostFailures`: which has failed so often in a row, and killed nobody, is let off. Before that it may be one that fails first and
   * kills when it is tried again; but one that fails for days must not be blamed when something else kills now and then.
   */
  constructor(upTo: number, held: ReadonlyMap<string, HeldLane>, mostFailures: number) {
    this.upTo = upTo
    this.#held = held
    this.#mostFailures = mostFailures
    // Not those that nobody tried then: when a redrive begins them later, that is no death of theirs.
    for (const { lane } of held.values()) if (this.#isTriedAgain(lane)) this.#lanes.set(lane, 0)
  }

  has({ record, lane, isLetter }: Entry): boolean {
    return isLetter ? this.#hasLane(lane) : record.position <= this.upTo
  }

  /** Its lane has to wait for a breaker: what may have killed is in there, and is tried when that is over, however long it takes. */
  wait(entry: Entry): void {
    if (this.has(entry)) this.#lanes.set(entry.lane, this.#lanes.get(entry.lane) ?? 0)
  }

  /** It was tried, nobody died, and its lane is held until it is tried again. */
  failed(entry: Entry): void {
    if (!this.has(entry)) return
    const failures = (this.#lanes.get(entry.lane) ?? 0) + 1
    if (failures < this.#mostFailures) this.#lanes.set(entry.lane, failures)
    else this.#lanes.delete(entry.lane)
  }

  /** Whether all of them have their outcome. */
  areOver(window: Window, isAtEnd: boolean): boolean {
    if (!this.areRead(window, isAtEnd)) return false
    for (const lane of this.#lanes.keys()) if (this.#hasLane(lane)) return false
    return true
  }

  /** Whether those of them that were read from the source have their outcome, or are held. */
  areRead(window: Window, isAtEnd = false): boolean {
    return (window.through >= this.upTo || isAtEnd) && !window.hasUnfinished(this.upTo)
  }

  /** Until it flows, is parked, or is let off. */
  #hasLane(lane: string): boolean {
    if (!this.#lanes.has(lane)) return false
    if (this.#isTriedAgain(lane)) return true
    this.#lanes.delete(lane)
    return false
  }

  #isTriedAgain(lane: string): boolean {
    const status = this.#held.get(lane)?.status
    return status === 'waiting' || status === 'retrying'
  }
}

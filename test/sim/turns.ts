import type { Commit, Range } from '../../src/subscription/subscription-store.ts'
import type { StepsSettings, Tried } from './steps.ts'
import type { Begun, Known, Ownership, Watcher } from './walk.ts'

/** What the store knows of a partition. */
interface Progress {
  position: number
  marks: readonly Range[]
}

/**
 * I2, I3: the events of a lane, or of a partition that is kept in order, are attempted in order, and not only applied in order: none is
 * begun before each one before it has an outcome, in the store or with the owner that begins it. What an owner has done it does not begin again, also when the answer to the
 * commit of it was lost.
 */
export class Turns implements Watcher {
  readonly problems: string[] = []
  /** How many attempts came behind an event that has no outcome in the store, or had none when the lane was held. */
  ordered = 0
  /** How many attempts an owner made after the answer to a commit was lost. */
  afterUnknown = 0
  readonly #isWhole: boolean
  readonly #known: readonly Known[]
  readonly #progress = new Map<number, Progress>()
  readonly #held = new Set<number>()
  readonly #everHeld = new Set<number>()
  readonly #owners = new Map<number, Ownership>()
  readonly #done = new Map<Ownership, Set<number>>()
  readonly #unknown = new Set<string>()

  constructor({ order }: Pick<StepsSettings, 'order'>, known: readonly Known[]) {
    this.#isWhole = order === 'partition'
    this.#known = known
  }

  claimed(ownership: Ownership): void {
    const before = this.#owners.get(ownership.partition)
    if (before) this.#done.delete(before)
    this.#owners.set(ownership.partition, ownership)
    this.#done.set(ownership, new Set())
    this.#unknown.delete(nameOf(ownership))
  }

  lost(who: string, what: string): void {
    if (what !== 'subscriptions.commit') return
    for (const ownership of this.#owners.values()) if (ownership.who === who) this.#unknown.add(nameOf(ownership))
  }

  begun({ event, ownership }: Begun): void {
    if (!ownership || this.#owners.get(event.partition) !== ownership) return
    const done = this.#done.get(ownership) as Set<number>
    if (this.#unknown.has(nameOf(ownership))) this.afterUnknown++
    if (done.has(event.position))
      this.problems.push(`I3 ${event.id} was done by ${ownership.who}, and is begun by it again`)
    let isOrdered = false
    for (const earlier of this.#known) {
      if (earlier.position >= event.position) break
      if (earlier.partition !== event.partition) continue
      if (earlier.lane !== event.lane && !this.#isWhole) continue
      isOrdered ||= this.#everHeld.has(earlier.position) || !this.#isFinished(earlier)
      if (this.#isFinished(earlier) || done.has(earlier.position)) continue
      this.problems.push(`I2 ${event.id} was begun by ${ownership.who} before ${earlier.id}, which has no outcome`)
    }
    if (isOrdered) this.ordered++
  }

  ended({ event, ownership }: Begun, { how }: Tried): void {
    if (how === 'done' && ownership && this.#owners.get(event.partition) === ownership)
      this.#done.get(ownership)?.add(event.position)
  }

  committed({ to, marks, held, letters }: Commit, { partition }: Ownership): void {
    for (const { event, status } of held) {
      if (status === 'discarded' || status === 'resolved') continue
      this.#held.add(event.position)
      this.#everHeld.add(event.position)
    }
    for (const { change, position } of letters)
      if (change === 'resolved' || change === 'discarded') this.#held.delete(position)
    const before = this.#progress.get(partition)
    this.#progress.set(partition, { position: to.position, marks: marks ?? before?.marks ?? [] })
  }

  #isFinished({ position, partition }: Known): boolean {
    const { position: passed, marks } = this.#progress.get(partition) ?? { position: 0, marks: [] }
    if (this.#held.has(position)) return false
    return position <= passed || marks.some(([from, to]) => position >= from && position <= to)
  }
}

function nameOf({ who, partition }: Ownership): string {
  return `${who}/${partition}`
}

import type { Commit, Range } from '../../src/subscription/subscription-store.ts'
import type { StepsSettings, Tried } from './steps.ts'
import type { Begun, Known, Tenure, Watcher } from './walk.ts'

/** What the store knows of a partition. */
interface Progress {
  position: number
  marks: readonly Range[]
}

/**
 * I2, I3: the events of a lane are attempted in order, and not only applied in order: none is begun before each one before it has an
 * outcome, in the store or with the owner that begins it. What an owner has done it does not begin again, also when the answer to the
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
  readonly #owners = new Map<number, Tenure>()
  readonly #done = new Map<Tenure, Set<number>>()
  readonly #unknown = new Set<string>()
  /** What is a problem unless the next commit of the owner parks the earlier event for deaths. */
  #open: { readonly tenure: Tenure; readonly earlier: Known; readonly problem: string }[] = []

  constructor({ order }: Pick<StepsSettings, 'order'>, known: readonly Known[]) {
    this.#isWhole = order === 'partition'
    this.#known = known
  }

  claimed(tenure: Tenure): void {
    const before = this.#owners.get(tenure.partition)
    if (before) this.#done.delete(before)
    this.#open = this.#open.filter(({ tenure: other }) => other !== before)
    this.#owners.set(tenure.partition, tenure)
    this.#done.set(tenure, new Set())
    this.#unknown.delete(nameOf(tenure))
  }

  lost(who: string, what: string): void {
    if (what !== 'subscriptions.commit') return
    for (const tenure of this.#owners.values()) if (tenure.who === who) this.#unknown.add(nameOf(tenure))
  }

  begun({ event, tenure }: Begun): void {
    if (!tenure || this.#owners.get(event.partition) !== tenure) return
    const done = this.#done.get(tenure) as Set<number>
    if (this.#unknown.has(nameOf(tenure))) this.afterUnknown++
    if (done.has(event.position))
      this.problems.push(`I3 ${event.id} was done by ${tenure.who}, and is begun by it again`)
    let isOrdered = false
    for (const earlier of this.#known) {
      if (earlier.position >= event.position) break
      if (earlier.partition !== event.partition) continue
      const isOfLane = earlier.lane === event.lane
      if (!isOfLane && !(this.#isWhole && !this.#held.has(event.position) && !this.#held.has(earlier.position)))
        continue
      isOrdered ||= this.#everHeld.has(earlier.position) || !this.#isFinished(earlier)
      if (this.#isFinished(earlier) || done.has(earlier.position)) continue
      const problem = `I2 ${event.id} was begun by ${tenure.who} before ${earlier.id}, which has no outcome`
      // Its owner may have parked it for the deaths of processes; then the next commit says so.
      if (isOfLane) this.problems.push(problem)
      else this.#open.push({ tenure, earlier, problem })
    }
    if (isOrdered) this.ordered++
  }

  ended({ event, tenure }: Begun, { how }: Tried): void {
    if (how === 'done' && tenure && this.#owners.get(event.partition) === tenure)
      this.#done.get(tenure)?.add(event.position)
  }

  committed(commit: Commit, tenure: Tenure): void {
    const { to, marks, held, letters } = commit
    const { partition } = tenure
    this.#settle(commit, tenure)
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

  /** Other lanes go on when one is parked for deaths, before the store has that. For any other reason they wait. */
  #settle({ held }: Commit, tenure: Tenure): void {
    const blamed = new Set(held.flatMap(({ lane, failure }) => (failure?.code === 'EVENT_DEADLY' ? [lane] : [])))
    const positions = new Set(held.map(({ event }) => event.position))
    this.#open = this.#open.filter(({ tenure: other, earlier, problem }) => {
      if (other !== tenure) return true
      if (!(blamed.has(earlier.lane) && positions.has(earlier.position))) this.problems.push(problem)
      return false
    })
  }

  #isFinished({ position, partition }: Known): boolean {
    const { position: passed, marks } = this.#progress.get(partition) ?? { position: 0, marks: [] }
    if (this.#held.has(position)) return false
    return position <= passed || marks.some(([from, to]) => position >= from && position <= to)
  }
}

function nameOf({ who, partition }: Tenure): string {
  return `${who}/${partition}`
}

import type { Failure } from '../../src/failure/failure.ts'
import type { RedriveTask } from '../../src/redrive/redrive.ts'
import type { ClaimOutcome, Commit } from '../../src/subscription/subscription-store.ts'
import { maxDeaths, type Tried } from './steps.ts'
import type { Begun, Known, Ownership, Watcher } from './walk.ts'

/** Of one process, at one event; position 0 is whatever it did. */
interface Open {
  readonly position: number
  readonly who: string
}

/**
 * What is promised is what is measured. One more where an event fails first and kills when it is tried again: when all suspects were tried
 * once, who died over everything is forgotten.
 */
function mostDeaths({ flaw }: Known): number {
  return flaw === 'fickle' ? maxDeaths + 1 : maxDeaths
}

/** So many died over it with nothing else beside it; those count half that were well long after they began it. */
const deathsAlone = 2

/**
 * Events that kill: one is parked after so many deaths and not before, nobody else is blamed, and who is tried alone is alone.
 */
export class Deaths implements Watcher {
  readonly problems: string[] = []
  readonly #byPosition: ReadonlyMap<number, Known>
  /** The trials in the store, by partition, and as they were when its owner read them: whoever lives may take its own back after the claim. */
  readonly #open = new Map<number, readonly Open[]>()
  readonly #loaded = new Map<Ownership, readonly Open[]>()
  readonly #found = new Map<Ownership, readonly Open[]>()
  readonly #running = new Map<string, Map<number, { readonly id: string; readonly isAlone: boolean }>>()
  /**
   * How many processes an event has killed since somebody gave its partition back or let it go, it was let off, or one before it in its lane
   * had to wait for a time of its own.
   */
  readonly #deaths = new Map<number, number>()
  /** How often an event has failed in one process, which lived. */
  readonly #lived = new Map<number, { readonly ownership: Ownership; readonly times: number }>()
  readonly #redrives = new Map<string, string | undefined>()
  /** What was let go, and nobody has tried since, or said that it would. */
  readonly #untried = new Set<number>()
  /** When a process took its word back, for a partition. */
  readonly #acquittedAt = new Map<string, number>()

  constructor(known: readonly Known[]) {
    this.#byPosition = new Map(known.map((event) => [event.position, event]))
  }

  claimed(ownership: Ownership, { isInherited }: Extract<ClaimOutcome, { outcome: 'claimed' }>): void {
    if (!isInherited) this.#forget(({ partition }) => partition === ownership.partition)
  }

  loaded(ownership: Ownership): void {
    this.#loaded.set(
      ownership,
      this.#openIn(ownership.partition).filter(({ who }) => who !== ownership.who),
    )
  }

  taken(ownership: Ownership): void {
    this.#found.set(ownership, this.#loaded.get(ownership) ?? [])
  }

  /** What is let go by another person's wish was mended, or so they think: it begins anew, though it may kill before anything is committed. */
  asked(tasks: readonly RedriveTask[]): void {
    for (const { lane, position, redrive, act } of tasks) {
      if (act !== 'redrive') continue
      if (this.#redrives.get(lane) !== redrive) {
        this.#forget((event) => event.lane === lane)
        this.#untried.add(position)
      }
      this.#redrives.set(lane, redrive)
    }
  }

  acquitted(who: string, partition: number, atMs: number): void {
    this.#acquittedAt.set(`${who}/${partition}`, atMs)
    this.#open.set(
      partition,
      this.#openIn(partition).filter((one) => one.who !== who),
    )
  }

  killed(who: string): void {
    this.#running.delete(who)
  }

  begun({ number, event, ownership }: Begun): void {
    if (!ownership) return
    const { id, position, partition } = event
    this.#untried.delete(position)
    const running = this.#running.get(ownership.who) ?? new Map()
    this.#running.set(ownership.who, running)
    const isAlone = this.#openIn(partition).some((one) => one.position === position && one.who === ownership.who)
    const others = [...running.values()]
    const other = isAlone ? others[0] : others.find((one) => one.isAlone)
    if (other)
      this.problems.push(`P9 ${id} and ${other.id} were tried at once by ${ownership.who}, and one of them alone`)
    running.set(number, { id, isAlone })
  }

  ended({ number, event, ownership }: Begun, { how }: Tried): void {
    if (!ownership) return
    this.#running.get(ownership.who)?.delete(number)
    if (how === 'transient') this.#failed(event, ownership)
    if (how !== 'died') return
    const deaths = (this.#deaths.get(event.position) ?? 0) + 1
    this.#deaths.set(event.position, deaths)
    if (deaths > mostDeaths(event))
      this.problems.push(`P9 ${event.id} has killed ${deaths} processes, and is not parked`)
  }

  /** As many failures without a death as it would take deaths: it is let off. */
  #failed({ position }: Known, ownership: Ownership): void {
    const before = this.#lived.get(position)
    const times = before?.ownership === ownership ? before.times + 1 : 1
    this.#lived.set(position, { ownership, times })
    if (times >= maxDeaths) this.#deaths.delete(position)
  }

  committed(commit: Commit, ownership: Ownership, atMs: number): void {
    const { held, letters, lanes, trial, endedTrials = [], acquitted } = commit
    for (const { event, failure } of held) this.#judge(event.position, failure, ownership)
    for (const change of letters)
      if (change.change === 'failed') this.#judge(change.position, change.failure, ownership)
    for (const { lane, hold } of lanes) {
      const isLetGo = hold?.redrive !== undefined && hold.redrive !== this.#redrives.get(lane)
      // Who waits behind one that has to wait for a time of its own is not suspected meanwhile.
      const isBehind = ({ position }: Known) => hold?.dueAt !== undefined && position !== hold.headPosition
      this.#forget((event) => event.lane === lane && (isLetGo || isBehind(event)))
      this.#redrives.set(lane, hold?.redrive)
    }
    const open = this.#openIn(ownership.partition)
    const isTakenBack = ({ who }: Open) => acquitted !== undefined && who === ownership.who
    const left = open.filter((one) => !endedTrials.includes(one.position) && !isTakenBack(one))
    // It had to wait for somebody whose time was up, and that came out when the word was taken back: it was there before, and is told of later.
    const wasBefore = this.#acquittedAt.get(`${ownership.who}/${ownership.partition}`) === atMs
    const own = trial && !wasBefore ? [{ position: trial.position, who: ownership.who }] : []
    const isMeant = ({ position }: Known) => trial?.position === position || trial?.position === 0
    this.#tried((event) => event.partition === ownership.partition && isMeant(event))
    this.#open.set(ownership.partition, [...left, ...own])
  }

  #judge(position: number, failure: Failure | undefined, ownership: Ownership): void {
    if (failure?.code !== 'EVENT_DEADLY') return
    const { id } = this.#byPosition.get(position) as Known
    const found = this.#found.get(ownership) ?? []
    const isBoth = ({ who }: Open, isSame: (one: Open) => boolean) =>
      found.some((one) => one.who === who && isSame(one))
    const alone = found
      .filter((one) => one.position === position)
      .reduce((sum, one) => sum + (isBoth(one, (other) => other.position === 0) ? 0.5 : 1), 0)
    const beside = found.filter((one) => one.position === 0 && !isBoth(one, (other) => other.position !== 0)).length
    this.#deaths.delete(position)
    if (this.#untried.has(position)) this.problems.push(`P9 ${id} was let go, and is blamed again without a try`)
    if (alone < deathsAlone) this.problems.push(`P9 ${id} is blamed for deaths that were not its own`)
    // The first of them left no word.
    else if (1 + beside + alone < maxDeaths) this.problems.push(`P9 ${id} is blamed for ${1 + beside + alone} deaths`)
  }

  #tried(isMeant: (event: Known) => boolean): void {
    for (const position of this.#untried)
      if (isMeant(this.#byPosition.get(position) as Known)) this.#untried.delete(position)
  }

  #openIn(partition: number): readonly Open[] {
    return this.#open.get(partition) ?? []
  }

  #forget(isMeant: (event: Known) => boolean): void {
    for (const position of this.#deaths.keys())
      if (isMeant(this.#byPosition.get(position) as Known)) this.#deaths.delete(position)
  }
}

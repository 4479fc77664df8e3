import type { Store } from 'holdfast'
import type { RedriveAct } from '../../src/redrive/redrive.ts'
import type { Commit } from '../../src/subscription/subscription-store.ts'
import { generationName } from '../../src/rebuild/generation.ts'
import type { Move } from '../../src/testing/simulation/checks.ts'
import { why } from '../../src/testing/simulation/simulated-operator.ts'
import type { CommitWatcher } from './commits.ts'
import type { Known } from './walk.ts'

/** A redrive, and the positions of the heads that were frozen when it was asked for, by lane. */
export interface FrozenSet {
  readonly act: RedriveAct
  readonly heads: ReadonlyMap<string, number>
  /** For whole lanes: the last queued position of each. */
  readonly untils?: ReadonlyMap<string, number>
}

export async function frozenSetsOf({ redrives }: Pick<Store, 'redrives'>): Promise<Map<string, FrozenSet>> {
  const sets = new Map<string, FrozenSet>()
  for (const { id, act } of await redrives.list({ limit: 10_000 })) {
    const lanes = await redrives.lanes(id, undefined, 0, 10_000)
    const heads = new Map(lanes.map(({ lane, position }) => [lane, position]))
    const untils = new Map(lanes.flatMap(({ lane, until }) => (until === undefined ? [] : [[lane, until] as const])))
    sets.set(id, { act, heads, untils })
  }
  return sets
}

/**
 * P7: a redrive acts on the lanes that were frozen when it was asked for, with the heads they had then, and on no others; it begins
 * each of them once, tries each letter once, and counts the letters that it ended. An operator's discard ends
 * only the heads and, for whole lanes, the letters that were queued behind them; none of these is tried.
 */
export class Frozen implements CommitWatcher {
  readonly problems: string[] = []
  /** How many lanes were begun. */
  begun = 0
  readonly #sets: ReadonlyMap<string, FrozenSet>
  /** Subscriptions whose letters also end by decisions that are taken over from another version. */
  readonly #copied: ReadonlySet<string>
  /** By subscription and lane. */
  readonly #redriveOf = new Map<string, string>()
  readonly #keyOf: ReadonlyMap<number, string>
  /** Of letters, by subscription and position: in a projection with its own key it is not that of the event. */
  readonly #laneOf = new Map<string, string>()
  readonly #begun = new Set<string>()
  readonly #failed = new Set<string>()

  constructor(sets: ReadonlyMap<string, FrozenSet>, known: readonly Known[], copied: readonly string[] = []) {
    this.#sets = sets
    this.#keyOf = new Map(known.map(({ position, lane }) => [position, lane]))
    this.#copied = new Set(copied)
  }

  moved(move: Move): void {
    const { subscription } = move
    const known = [...this.#redriveOf]
    this.#redriveOf.clear()
    for (const [name, redrive] of known) {
      const [of = '', lane] = name.split('/')
      const to = movedTo(of)
      if (to !== undefined) this.#redriveOf.set(`${to}/${lane}`, redrive)
    }

    function movedTo(of: string): string | undefined {
      if (move.move === 'reset') return of === subscription || of.startsWith(`${subscription}~`) ? undefined : of
      if (move.move === 'drop') return of === generationName(subscription, move.version) ? undefined : of
      // A switch ends the redrives of both versions.
      return of === subscription || of === generationName(subscription, move.to) ? undefined : of
    }
  }

  committed(commit: Commit): void {
    const { lease, lanes, held, letters, redriven = [] } = commit
    const { subscription } = lease
    // Its positions are not those of the log.
    if (subscription === 'arrivals') return
    const named = (lane: string) => `${subscription}/${lane}`
    for (const { lane, event } of held) this.#laneOf.set(`${subscription}/${event.position}`, lane)
    const before = new Map([...lanes, ...redriven].map(({ lane }) => [lane, this.#redriveOf.get(named(lane))] as const))
    for (const { lane, hold } of lanes) {
      const { redrive } = hold ?? {}
      if (redrive !== undefined && hold?.status === 'parked')
        this.#tell(subscription, `${lane} is parked, and still in the redrive ${redrive}`)
      if (redrive !== undefined && redrive !== before.get(lane)) this.#begin(commit, lane, redrive)
      if (redrive === undefined) this.#redriveOf.delete(named(lane))
      else this.#redriveOf.set(named(lane), redrive)
    }
    for (const { lane, redrive, state } of redriven) {
      const isNew = before.get(lane) !== redrive && this.#redriveOf.get(named(lane)) !== redrive
      if (state === 'passed') {
        if (this.#begun.has(`${redrive}/${lane}`))
          this.#tell(subscription, `${lane} is passed over by the redrive ${redrive}, which had begun it`)
      } else if (isNew) this.#begin(commit, lane, redrive)
    }
    const endsOf = new Map<string, number>()
    for (const change of letters) {
      const lane = (this.#laneOf.get(`${subscription}/${change.position}`) ??
        this.#keyOf.get(change.position)) as string
      const redrive =
        this.#redriveOf.get(named(lane)) ?? before.get(lane) ?? redriven.find((one) => one.lane === lane)?.redrive
      if (change.change === 'resolved' || change.change === 'discarded') {
        endsOf.set(lane, (endsOf.get(lane) ?? 0) + 1)
        const by = change.change === 'discarded' ? change.ending.by : change.by
        if (by === why.by && !this.#copied.has(subscription)) this.#ended(subscription, lane, change, redrive)
      }
      const until = redrive === undefined ? undefined : this.#sets.get(redrive)?.untils?.get(lane)
      const isTried = change.change === 'failed' || (change.change === 'resolved' && change.by === 'engine')
      if (isTried && until !== undefined && change.position <= until)
        this.#tell(subscription, `the letter ${change.position} was tried, and the redrive ${redrive} leaves it out`)
      if (change.change !== 'failed' || redrive === undefined || change.failure.code === 'EVENT_DEADLY') continue
      const name = `${redrive}/${subscription}/${change.position}`
      if (this.#failed.has(name))
        this.#tell(subscription, `the letter ${change.position} failed twice in the redrive ${redrive}`)
      this.#failed.add(name)
    }
    for (const lane of before.keys()) {
      const told = redriven.filter((one) => one.lane === lane)
      const isIn = before.get(lane) !== undefined || told.some(({ state }) => state !== 'passed')
      const counted = told.reduce((sum, one) => sum + one.letters, 0)
      const left = before.get(lane)
      const isOver = told.some(({ redrive, state }) => redrive === left && state !== 'running' && state !== 'passed')
      if (left !== undefined && this.#redriveOf.get(named(lane)) !== left && !isOver)
        this.#tell(subscription, `${lane} left the redrive ${left}, which was not told how it ended`)
      if (isIn && counted !== (endsOf.get(lane) ?? 0))
        this.#tell(subscription, `${endsOf.get(lane) ?? 0} letters of ${lane} ended, and its redrive counts ${counted}`)
    }
  }

  #begin({ lease, letters, lanes }: Commit, lane: string, redrive: string): void {
    const { subscription } = lease
    const set = this.#sets.get(redrive)
    // It went with the version that it was asked for.
    if (!set) return
    const head = set.heads.get(lane)
    this.begun++
    if (head === undefined) return this.#tell(subscription, `the redrive ${redrive} began ${lane}, which is not in it`)
    const isAtHead = lanes.some((write) => write.lane === lane && write.hold?.headPosition === head)
    if (!isAtHead && !letters.some(({ position }) => position === head))
      this.#tell(subscription, `the redrive ${redrive} began ${lane}, and not at ${head}`)
    if (this.#begun.has(`${redrive}/${lane}`))
      this.#tell(subscription, `the redrive ${redrive} began ${lane} a second time`)
    this.#begun.add(`${redrive}/${lane}`)
  }

  #ended(subscription: string, lane: string, change: Commit['letters'][number], redrive: string | undefined): void {
    const set = redrive === undefined ? undefined : this.#sets.get(redrive)
    const act = change.change === 'discarded' ? 'discard' : 'resolve'
    const [head = 0, until = head] = [set?.heads.get(lane), set?.untils?.get(lane)]
    if (set?.act !== act || change.position < head || change.position > until)
      this.#tell(subscription, `the letter ${change.position} of ${lane} was left out, and no ${act} names it`)
  }

  #tell(subscription: string, what: string): void {
    this.problems.push(`P7 ${subscription}: ${what}`)
  }
}

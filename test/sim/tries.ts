import type { HeldLane } from '../../src/dead-letter/letter.ts'
import type { Failure } from '../../src/failure/failure.ts'
import type { Commit } from '../../src/subscription/subscription-store.ts'
import {
  breakerOf,
  type Flaw,
  firstDelayMs,
  outageLanes,
  retryDelayMs,
  pausesAfter,
  type StepsSettings,
  type Tried,
} from './steps.ts'
import type { Begun, Known, Ownership, Watcher } from './walk.ts'

/** What an event has behind it since its lane was let go for the last time. */
interface Life {
  /** How often it failed, and how often of that since an outage that is certain. A probe is the breaker's question, and counts for neither. */
  failed: number
  counting: number
  /** How often its letter says so. */
  recorded: number
  last: { readonly ownership: Ownership; readonly atMs: number } | undefined
  /** What the owner has seen of it: how often it failed, and how often that was recorded. */
  own: { readonly ownership: Ownership; failed: number; recorded: number } | undefined
}

/** What an owner has seen fail, and nobody answered since: by lane, of what. */
interface Standing {
  readonly failing: Map<string, { readonly position: number; readonly life: Life; readonly why: string | undefined }>
  readonly failedBefore: Set<string>
  /** How often that was, one after the other. */
  inARow: number
  outage: 'none' | 'standing' | 'over'
  /** What it gave back for that, by position: how much had counted. */
  readonly givenBack: Map<number, number>
  /** How many commits the store took of it since then. */
  commits: number
  /** Since when it stands still at one event, where the policy says so. */
  stoodAt: number | undefined
}

const beginning = Date.UTC(2026, 0, 1)
/** How far the time of a process may be from that of the store: as long as the answer to its claim took. */
const clockMs = 100
/** How long it may take until an owner that has nothing else to do begins what is due. */
const idleMs = 500
/** How long an owner may be busy with a store that did not answer, or with a partition that was paused. */
const troubleMs = 15_000
/** How long an owner may be busy with what the owner before may have died over, where nothing kills. */
const suspicionMs = 3_000
const deadlyFlaws: readonly Flaw[] = ['deadly', 'fickle', 'fatal']

/** One may have been under way when an outage was found out; the next says what was given back. */
const commitsUntilKept = 2

/**
 * Attempts and what they count for: no more of them than the policy gives, none before its time and none long after it, none that was
 * not made and none that was made and is not recorded. `lanes` is what the store has.
 */
export class Tries implements Watcher {
  readonly problems: string[] = []
  readonly #settings: StepsSettings
  readonly #byPosition: ReadonlyMap<number, Known>
  readonly #lives = new Map<number, Life>()
  readonly #lanes = new Map<string, HeldLane>()
  readonly #owners = new Map<number, Ownership>()
  readonly #standings = new Map<Ownership, Standing>()
  /** Lanes that were among several that failed without an answer: what counted may have been given back. */
  readonly #excused = new Set<string>()
  /** Who was given a probe, and of which breaker, and has not begun it. */
  readonly #probing = new Set<string>()
  readonly #probes = new Set<number>()
  /** How often each event was begun, and how many attempts its letter has. */
  readonly #begun = new Map<number, number>()
  readonly #attempts = new Map<number, number>()
  /** How often its letter was parked for deaths, of which some came before the handler was called. */
  readonly #blamed = new Map<number, number>()
  /** Until when a process has something else to do, and how many attempts it has under way. */
  readonly #busyUntil = new Map<string, number>()
  readonly #running = new Map<string, number>()
  readonly #isTimed: boolean
  /** How many retries were compared with the delay of the policy, and how many due ones with the time they were begun. */
  timed = 0
  punctual = 0
  /** How many letters were compared with the attempts at them. */
  compared = 0

  /** `isTimed`: no process stands still, and no answer is slow, so that delays can be told to the millisecond. */
  constructor(settings: StepsSettings, known: readonly Known[], isTimed = false) {
    this.#settings = settings
    this.#isTimed = isTimed
    this.#byPosition = new Map(known.map((event) => [event.position, event]))
  }

  claimed(ownership: Ownership, claim?: { readonly isInherited: boolean }, atMs = 0): void {
    // What was due before had no owner.
    this.#isBusy(ownership.who, claim?.isInherited === false ? atMs : atMs + suspicionMs)
    const before = this.#owners.get(ownership.partition)
    if (before) this.#forgotten(this.#standings.get(before) as Standing)
    this.#owners.set(ownership.partition, ownership)
    this.#standings.set(ownership, {
      failing: new Map(),
      failedBefore: new Set(),
      inARow: 0,
      outage: 'none',
      givenBack: new Map(),
      commits: 0,
      stoodAt: undefined,
    })
  }

  saved(who: string, { name, record }: { readonly name: string; readonly record: string }): void {
    const { probes = [] } = JSON.parse(record) as { probes?: readonly unknown[] }
    if (probes.length > 1) this.problems.push(`I10 ${name}: ${probes.length} probes at once`)
    if (probes.length > 0) this.#probing.add(`${who} ${name}`)
    // Given back: whatever it begins next is no probe.
    else this.#probing.delete(`${who} ${name}`)
  }

  lost(who: string, _what: string, atMs: number): void {
    this.#isBusy(who, atMs + troubleMs)
  }

  paused(atMs: number): void {
    for (const { who } of this.#owners.values()) this.#isBusy(who, atMs + troubleMs)
  }

  killed(who: string): void {
    this.#running.delete(who)
  }

  begun(begun: Begun): void {
    const { number, event, ownership, atMs, attempt } = begun
    const { id, lane, position, partition } = event
    const times = (this.#begun.get(position) ?? 0) + 1
    this.#begun.set(position, times)
    if (ownership) this.#running.set(ownership.who, (this.#running.get(ownership.who) ?? 0) + 1)
    if (!ownership) return void this.problems.push(`I13 ${id} was begun by somebody who had never claimed it`)
    const breaker = breakerOf(this.#settings, lane)
    if (this.#probing.delete(`${ownership.who} ${breaker}`)) this.#probes.add(number)
    if (this.#owners.get(partition) !== ownership) return
    const hold = this.#lanes.get(lane)
    const where = `at ${atMs.toFixed(0)} ms by ${ownership.who}`
    if (hold?.status === 'parked') this.problems.push(`I6 ${id} was begun ${where} while its lane was parked`)
    // An operator may edit it until then, and the edit would be accepted and not tried.
    if (hold?.status === 'waiting')
      this.problems.push(`I7 ${id} was begun ${where} while its lane waited for a breaker`)
    if (hold?.headPosition === position && (hold.dueAt ?? 0) > beginning + atMs)
      this.problems.push(`I11 ${id} was begun ${where}, and is due at ${(hold.dueAt as number) - beginning} ms`)
    const { last, own } = this.#lifeOf(position)
    const { stops } = this.#settings
    const recorded = this.#attempts.get(position) ?? 0
    const most = times + (this.#blamed.get(position) ?? 0)
    if (attempt !== undefined && (attempt > most || attempt <= recorded))
      this.problems.push(
        `I11 ${id} was begun ${where} as attempt ${attempt}, after ${times - 1} attempts, ${recorded} of them recorded`,
      )
    const stoodForMs = atMs - (this.#standings.get(ownership)?.stoodAt ?? atMs)
    if (stoodForMs > 0 && stoodForMs < firstDelayMs - 1)
      this.problems.push(`I11 ${id} was begun ${where}, ${stoodForMs.toFixed(0)} ms after its partition stood still`)
    // Who stands still goes on with whoever is the first, and who pauses as soon as anybody goes through.
    const isFree =
      stops !== 'never' || breaker !== undefined || this.#excused.has(lane) || last?.ownership !== ownership
    this.#onTime(begun, hold)
    if (!last || isFree) return
    const delayMs = retryDelayMs(own?.ownership === ownership ? Math.max(1, own.failed) : 1)
    this.timed++
    // One less, for what is lost by rounding.
    if (atMs - last.atMs < delayMs - 1)
      this.problems.push(`I11 ${id} was begun ${where}, ${(atMs - last.atMs).toFixed(0)} ms after it failed`)
  }

  /** A head that is due is begun when its owner has nothing else to do. */
  #onTime({ event, ownership, atMs }: Begun, hold: HeldLane | undefined): void {
    if (!ownership || !this.#isTimed || hold?.headPosition !== event.position || hold.redrive !== undefined) return
    const { stops, breaker, order, flaws } = this.#settings
    if (hold.dueAt === undefined || stops !== 'never' || breaker || order !== 'key') return
    if (this.#excused.has(event.lane) || flaws.some((flaw) => deadlyFlaws.includes(flaw))) return
    if ((this.#running.get(ownership.who) ?? 0) > 1) return
    const dueMs = Math.max(hold.dueAt - beginning, this.#busyUntil.get(ownership.who) ?? 0)
    this.punctual++
    if (atMs - dueMs > idleMs)
      this.problems.push(
        `I11 ${event.id} was begun by ${ownership.who}, ${(atMs - dueMs).toFixed(0)} ms after it was due`,
      )
  }

  #isBusy(who: string, untilMs: number): void {
    this.#busyUntil.set(who, Math.max(untilMs, this.#busyUntil.get(who) ?? 0))
  }

  ended({ number, event, ownership, atMs: begunMs }: Begun, { how, why }: Tried, atMs: number): void {
    const isProbe = this.#probes.delete(number)
    if (ownership) {
      this.#running.set(ownership.who, Math.max(0, (this.#running.get(ownership.who) ?? 0) - 1))
      this.#isBusy(ownership.who, atMs)
    }
    const standing =
      ownership && this.#owners.get(event.partition) === ownership ? this.#standings.get(ownership) : undefined
    if (how === 'transient' && !isProbe) {
      const life = this.#lifeOf(event.position)
      life.failed++
      if (standing?.outage !== 'standing') life.counting++
      life.last = ownership && { ownership, atMs }
    }
    if (!standing || !ownership) return
    if ((how === 'transient' || how === 'permanent') && !isProbe) this.#ownOf(event.position, ownership).failed++
    if (how === 'done' || how === 'permanent') this.#answered(standing, begunMs)
    if (how === 'transient') this.#failed(standing, event, why)
    if (how === 'transient' && this.#standsStill) standing.stoodAt ??= atMs
  }

  committed({ held, letters, lanes }: Commit, ownership: Ownership, atMs = 0): void {
    const { partition, who } = ownership
    this.#isBusy(who, atMs)
    const standing = this.#standings.get(ownership)
    if (standing) standing.commits++
    // One that its handler passes over has its reason, and not all of its attempts.
    const changed = new Set<number>()
    for (const { event, failure, status } of held) {
      if (failure && status !== 'discarded') changed.add(event.position)
      this.#recorded(event.position, failure, status, ownership)
    }
    for (const change of letters) {
      if (change.change === 'failed' || change.change === 'resolved') changed.add(change.position)
      if (change.change === 'failed') this.#recorded(change.position, change.failure, change.status, ownership)
    }
    for (const position of changed) this.#compare(position, ownership)
    for (const { lane, hold } of lanes) {
      this.#timely(hold, ownership)
      this.#hung(lane, hold, partition)
    }
  }

  /** What an owner has seen fail is in the letter when it writes the next outcome of it, each failure once. */
  #compare(position: number, ownership: Ownership): void {
    const { id, lane } = this.#byPosition.get(position) as Known
    const { own } = this.#lifeOf(position)
    const { stops, breaker, order } = this.#settings
    // Which of the attempts was a probe of its breaker is not always known.
    if (stops !== 'never' || breaker || order !== 'key') return
    if (!own || own.ownership !== ownership || this.#excused.has(lane)) return
    this.compared++
    if (own.recorded !== own.failed)
      this.problems.push(`I11 ${id} failed ${own.failed} times in ${ownership.who}, and ${own.recorded} are recorded`)
  }

  /** When a head is due is what its policy says, from when it failed. */
  #timely(hold: HeldLane | undefined, ownership: Ownership): void {
    if (!hold || !this.#isTimed || hold.status !== 'retrying' || hold.dueAt === undefined) return
    const { headPosition, tries = 0, dueAt, lane } = hold
    const { last } = this.#lifeOf(headPosition)
    const { stops, breaker, order } = this.#settings
    if (tries === 0 || last?.ownership !== ownership || this.#excused.has(lane)) return
    if (stops !== 'never' || breaker || order !== 'key') return
    this.timed++
    const offMs = dueAt - beginning - last.atMs - retryDelayMs(tries)
    if (Math.abs(offMs) > clockMs) {
      const { id } = this.#byPosition.get(headPosition) as Known
      this.problems.push(`I11 ${id} is due ${offMs.toFixed(0)} ms off what its policy says after ${tries} failures`)
    }
  }

  /** At one event, until that goes through. Who asks a breaker or the inbox first is under way already while it does. */
  get #standsStill(): boolean {
    const { stops, breaker, dedupe } = this.#settings
    return stops === 'block' && !breaker && !dedupe
  }

  #answered(standing: Standing, begunMs: number): void {
    // Who was under way can't tell.
    if (begunMs - (standing.stoodAt ?? begunMs) >= firstDelayMs - 1) standing.stoodAt = undefined
    for (const lane of standing.failing.keys()) standing.failedBefore.add(lane)
    standing.failing.clear()
    standing.inARow = 0
    if (standing.outage === 'standing') standing.outage = 'over'
  }

  /** What an owner has given back, and not written down, is gone with it: then that counts which the store says. */
  #forgotten({ givenBack, commits }: Standing): void {
    if (commits >= commitsUntilKept) return
    for (const [position, counted] of givenBack) {
      const hold = this.#lanes.get((this.#byPosition.get(position) as Known).lane)
      const life = this.#lifeOf(position)
      if (hold?.headPosition === position) life.counting = Math.max(life.counting, Math.min(counted, hold.tries ?? 0))
    }
  }

  #failed(standing: Standing, { lane, position }: Known, why: string | undefined): void {
    const { failing, failedBefore, outage } = standing
    const { stops, breaker, attempts } = this.#settings
    failing.set(lane, { position, life: this.#lifeOf(position), why })
    standing.inARow++
    if (failing.size < outageLanes) return
    for (const one of failing.keys()) this.#excused.add(one)
    // Several that failed for the first time, and alike: that is one, whatever else is taken for one.
    const isCertain = [...failing].every(([one, about]) => about.why === why && !failedBefore.has(one))
    // Who pauses by then for what failed before asks no more whether it is one.
    const isPaused = stops === 'pause' && standing.inARow > pausesAfter
    if (outage !== 'none' || !isCertain || isPaused || breaker) return
    standing.outage = 'standing'
    standing.commits = 0
    for (const [one, { life, position: at }] of failing) {
      const isDecided = life.counting >= attempts || this.#lanes.get(one)?.redrive !== undefined
      if (isDecided) continue
      standing.givenBack.set(at, life.counting)
      life.counting = 0
    }
  }

  #recorded(position: number, failure: Failure | undefined, status: string, ownership: Ownership): void {
    if (!failure) return
    this.#attempts.set(position, (this.#attempts.get(position) ?? 0) + 1)
    if (failure.code === 'EVENT_DEADLY') return void this.#blamed.set(position, (this.#blamed.get(position) ?? 0) + 1)
    this.#ownOf(position, ownership).recorded++
    const { id, lane, flaw } = this.#byPosition.get(position) as Known
    const { attempts } = this.#settings
    const life = this.#lifeOf(position)
    const isRedriven = this.#lanes.get(lane)?.redrive !== undefined
    if (failure.class === 'permanent') {
      if (flaw !== 'permanent' && flaw !== 'needless')
        this.problems.push(`I11 ${id} is blamed for what it never did: ${failure.message}`)
      return
    }
    life.recorded++
    if (isRedriven && status === 'retrying') this.problems.push(`I7 ${id} failed in a redrive, and is tried again`)
    if (life.recorded > attempts && !this.#excused.has(lane))
      this.problems.push(`I11 ${id} failed ${life.recorded} times, and may ${attempts} times`)
    const needed = isRedriven ? 1 : attempts
    if (status === 'parked' && life.counting < needed)
      this.problems.push(`I11 ${id} was parked after ${life.counting} failures, and has ${needed} tries`)
  }

  #hung(lane: string, hold: HeldLane | undefined, partition: number): void {
    const before = this.#lanes.get(lane)
    if (hold?.redrive !== undefined && hold.redrive !== before?.redrive) {
      this.#excused.delete(lane)
      for (const { position, lane: other } of this.#byPosition.values())
        if (other === lane) this.#lives.delete(position)
    }
    if (!hold) return void this.#lanes.delete(lane)
    this.#lanes.set(lane, hold)
    const { tries = 0, headPosition, status } = hold
    const { failed } = this.#lifeOf(headPosition)
    // One that is parked for the deaths of processes counts them as one try.
    if (tries > failed + (status === 'parked' ? 1 : 0)) {
      const { id } = this.#byPosition.get(headPosition) as Known
      this.problems.push(`I10 ${id} in partition ${partition} failed ${failed} times, and ${tries} count against it`)
    }
  }

  #lifeOf(position: number): Life {
    const known = this.#lives.get(position)
    if (known) return known
    const life = { failed: 0, counting: 0, recorded: 0, last: undefined, own: undefined }
    this.#lives.set(position, life)
    return life
  }

  #ownOf(position: number, ownership: Ownership): NonNullable<Life['own']> {
    const life = this.#lifeOf(position)
    if (life.own?.ownership !== ownership) life.own = { ownership, failed: 0, recorded: 0 }
    return life.own
  }
}

import type { HeldLane } from '../../src/dead-letter/letter.ts'
import type { Failure } from '../../src/failure/failure.ts'
import type { Commit } from '../../src/subscription/subscription-store.ts'
import { breakerOf, firstDelayMs, outageLanes, pausesAfter, type StepsSettings, type Tried } from './steps.ts'
import type { Begun, Known, Tenure, Watcher } from './walk.ts'

/** What an event has behind it since its lane was let go for the last time. */
interface Life {
  /** How often it failed, and how often of that since an outage that is certain. A probe is the breaker's question, and counts for neither. */
  failed: number
  counting: number
  /** How often its letter says so. */
  recorded: number
  last: { readonly tenure: Tenure; readonly atMs: number } | undefined
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

/** One may have been under way when an outage was found out; the next says what was given back. */
const commitsUntilKept = 2

/**
 * Attempts and what they count for: no more of them than the policy gives, none before its time, none that nobody made. `lanes` is what
 * the store has.
 */
export class Tries implements Watcher {
  readonly problems: string[] = []
  readonly #settings: StepsSettings
  readonly #byPosition: ReadonlyMap<number, Known>
  readonly #lives = new Map<number, Life>()
  readonly #lanes = new Map<string, HeldLane>()
  readonly #owners = new Map<number, Tenure>()
  readonly #standings = new Map<Tenure, Standing>()
  /** Lanes that were among several that failed without an answer: what counted may have been given back. */
  readonly #excused = new Set<string>()
  /** Who was given a probe, and of which breaker, and has not begun it. */
  readonly #probing = new Set<string>()
  readonly #probes = new Set<number>()

  constructor(settings: StepsSettings, known: readonly Known[]) {
    this.#settings = settings
    this.#byPosition = new Map(known.map((event) => [event.position, event]))
  }

  claimed(tenure: Tenure): void {
    const before = this.#owners.get(tenure.partition)
    if (before) this.#forgotten(this.#standings.get(before) as Standing)
    this.#owners.set(tenure.partition, tenure)
    this.#standings.set(tenure, {
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

  begun({ number, event, tenure, atMs }: Begun): void {
    const { id, lane, position, partition } = event
    if (!tenure) return void this.problems.push(`I13 ${id} was begun by somebody who had never claimed it`)
    const breaker = breakerOf(this.#settings, lane)
    if (this.#probing.delete(`${tenure.who} ${breaker}`)) this.#probes.add(number)
    if (this.#owners.get(partition) !== tenure) return
    const hold = this.#lanes.get(lane)
    const where = `at ${atMs.toFixed(0)} ms by ${tenure.who}`
    if (hold?.status === 'parked') this.problems.push(`I6 ${id} was begun ${where} while its lane was parked`)
    // An operator may edit it until then, and the edit would be accepted and not tried.
    if (hold?.status === 'waiting')
      this.problems.push(`I7 ${id} was begun ${where} while its lane waited for a breaker`)
    if (hold?.headPosition === position && (hold.dueAt ?? 0) > beginning + atMs)
      this.problems.push(`I11 ${id} was begun ${where}, and is due at ${(hold.dueAt as number) - beginning} ms`)
    const { last } = this.#lifeOf(position)
    const { stops } = this.#settings
    const stoodForMs = atMs - (this.#standings.get(tenure)?.stoodAt ?? atMs)
    if (stoodForMs > 0 && stoodForMs < firstDelayMs - 1)
      this.problems.push(`I11 ${id} was begun ${where}, ${stoodForMs.toFixed(0)} ms after its partition stood still`)
    // Who stands still goes on with whoever is the first, and who pauses as soon as anybody goes through.
    const isFree = stops !== 'never' || breaker !== undefined || this.#excused.has(lane) || last?.tenure !== tenure
    // One less, for what is lost by rounding.
    if (last && !isFree && atMs - last.atMs < firstDelayMs - 1)
      this.problems.push(`I11 ${id} was begun ${where}, ${(atMs - last.atMs).toFixed(0)} ms after it failed`)
  }

  ended({ number, event, tenure, atMs: begunMs }: Begun, { how, why }: Tried, atMs: number): void {
    const isProbe = this.#probes.delete(number)
    const standing = tenure && this.#owners.get(event.partition) === tenure ? this.#standings.get(tenure) : undefined
    if (how === 'transient' && !isProbe) {
      const life = this.#lifeOf(event.position)
      life.failed++
      if (standing?.outage !== 'standing') life.counting++
      life.last = tenure && { tenure, atMs }
    }
    if (!standing) return
    if (how === 'done' || how === 'permanent') this.#answered(standing, begunMs)
    if (how === 'transient') this.#failed(standing, event, why)
    if (how === 'transient' && this.#standsStill) standing.stoodAt ??= atMs
  }

  committed({ held, letters, lanes }: Commit, tenure: Tenure): void {
    const { partition } = tenure
    const standing = this.#standings.get(tenure)
    if (standing) standing.commits++
    for (const { event, failure, status } of held) this.#recorded(event.position, failure, status)
    for (const change of letters)
      if (change.change === 'failed') this.#recorded(change.position, change.failure, change.status)
    for (const { lane, hold } of lanes) this.#hung(lane, hold, partition)
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

  #recorded(position: number, failure: Failure | undefined, status: string): void {
    if (!failure || failure.code === 'EVENT_DEADLY') return
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
    const life = { failed: 0, counting: 0, recorded: 0, last: undefined }
    this.#lives.set(position, life)
    return life
  }
}

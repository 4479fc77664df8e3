import type { HeldLane } from '../../dead-letter/letter.ts'
import type { RedriveTask } from '../../redrive/redrive.ts'
import { endsHead, fits, lanesAtOnce, type WholeTask } from '../held/redrive-tasks.ts'
import type { HandlerState } from './handler-state.ts'

const askAgainMs = 50
/** The number of letters of whole lanes that end with one commit. */
const lettersAtOnce = 500

/**
 * Starts the lanes of redrives. A started lane is due and is processed like any other due lane. The start is committed before the first
 * letter is tried, so that the next owner after a death knows what may have been done. If a redrive discards the only letter of a lane,
 * that is committed before more events of the lane are read: until then the lane is held, and the redrive can be cancelled.
 *
 * If a redrive ends whole lanes, the letters behind the heads are ended here too, a number of them per commit. They are not tried, so this
 * does not wait for a breaker, and continues when no more lanes may start.
 */
export class RedriveStart {
  readonly #state: HandlerState
  /** The lanes of the last round. Until they are committed, the store returns them again. */
  #begun: readonly string[] = []
  /** A lane waits for the rate limit of its redrive. */
  #isPaced = false
  /** Some lanes were released; nothing was read until that was committed. */
  #keptFromReading = false
  /** When the rate of a redrive allows more letters of whole lanes to end; by the monotonic clock. */
  #leavesAt: number | undefined

  constructor(handlerState: HandlerState) {
    this.#state = handlerState
  }

  /** A lane is released because its head is discarded, and that is not committed yet. */
  get isLettingFlow(): boolean {
    const { ledger, partition } = this.#state
    return this.#begun.some((lane) => !partition.held.has(lane) && ledger.touches(lane))
  }

  /** Letters of whole lanes are still to be ended, now or when the rate of their redrive allows it. */
  get isLeavingOut(): boolean {
    return this.#wholes().length > 0
  }

  /** When to end more letters of whole lanes, if not immediately. */
  nextAt(): number | undefined {
    return this.#leavesAt
  }

  async take(): Promise<void> {
    const { redriving, partition, ledger, parts } = this.#state
    await redriving.learn(partition.held.values())
    if (this.#begun.some((lane) => ledger.touches(lane))) return
    // Reading has its turn before more lanes start.
    if (this.#keptFromReading) {
      this.#keptFromReading = false
      return parts.wake()
    }
    this.#begun = await this.#leaveOut()
    const now = parts.runtime.clock.mono()
    const room = lanesAtOnce - ledger.underWay
    if (room <= 0 || !redriving.isDue(now)) return
    const tasks = await redriving.due(room)
    const admitted: RedriveTask[] = []
    this.#isPaced = false
    for (const task of tasks) if (admitted.length < room && this.#admits(task, admitted)) admitted.push(task)
    this.#begun = [...this.#begun, ...admitted.map(({ lane }) => lane)]
    // Only time lets more lanes start, so it saves the queries until then.
    if (admitted.length === 0 && this.#isPaced) redriving.postpone(now + askAgainMs)
    const seconds = await this.#secondsOf(admitted.filter(endsHead))
    for (const task of admitted) this.#begin(task, seconds.get(task.lane))
  }

  /** Whether a lane can start now. A lane that is being tried or has uncommitted changes comes up again later. */
  #admits(task: RedriveTask, others: readonly RedriveTask[]): boolean {
    const { ledger, draining, partition, redriving } = this.#state
    const { lane, redrive } = task
    if (draining.has(lane) || ledger.touches(lane)) return false
    if (!fits(task, partition.held.get(lane))) {
      ledger.notStarted(task)
      return false
    }
    const pace = redriving.paceOf(redrive)
    if (!pace) return true
    // Started lanes that wait would delay other due lanes, and a cancel should still apply to them.
    const begun = others.filter((other) => other.redrive === redrive).length
    const isFull = begun + ledger.waiting(redrive, draining) >= Math.ceil(pace.most)
    this.#isPaced ||= isFull
    return !isFull
  }

  /** Started lanes whose next letter is ended with the whole lane. */
  #wholes(): readonly HeldLane[] {
    const { ledger, partition, redriving } = this.#state
    return Array.from(ledger.lanesUnderWay, (lane) => partition.held.get(lane) as HeldLane).filter((hold) =>
      redriving.isLeftOut(hold),
    )
  }

  /** Ends the next letters of these lanes. Returns the lanes. */
  async #leaveOut(): Promise<readonly string[]> {
    const { ledger, redriving, parts, due, suspicion } = this.#state
    const { store, subscription, share, settings, runtime } = parts
    this.#leavesAt = undefined
    // Uncommitted letters cannot be loaded.
    const wholes = this.#wholes().filter(({ lane }) => !ledger.touches(lane))
    if (wholes.length === 0) return []
    const now = runtime.clock.mono()
    const ready = wholes.filter(({ redrive }) => {
      const waitMs = redriving.paceOf(redrive)?.waitMs(now) ?? 0
      if (waitMs > 0) this.#leavesAt = Math.min(this.#leavesAt ?? Number.POSITIVE_INFINITY, now + waitMs)
      return waitMs === 0
    })
    if (ready.length === 0) return []
    const byLane = new Map(ready.map((hold) => [hold.lane, hold]))
    const limits = { events: lettersAtOnce, bytes: settings.pageBytes, perLane: lettersAtOnce }
    const queues = await store.letters.queues(subscription.name, share.partition, [...byLane.keys()], limits)
    for (const { lane, letters, next: beyond } of queues) {
      const { redrive } = byLane.get(lane) as HeldLane
      const whole = redriving.wholeOf(lane, redrive) as WholeTask
      const pace = redriving.paceOf(redrive)
      const most = pace?.available(now) ?? letters.length
      const first = letters.findIndex(({ event }, i) => i >= most || event.position > whole.until)
      const left = first === -1 ? letters : letters.slice(0, first)
      // Another lane of the redrive has used up the rate.
      if (left.length === 0 && letters.length > 0) continue
      pace?.take(left.length)
      for (const { event } of left) {
        ledger.leaveOut(whole, event.position)
        ledger.endTrials(suspicion.forget(event.position))
      }
      const after = letters[left.length]
      const next = after ? { sequence: after.sequence, position: after.event.position } : beyond
      this.#keptFromReading ||= next === undefined
      ledger.advance(lane, next)
      if (next) due.add(lane, 0)
    }
    return queues.map(({ lane }) => lane)
  }

  /** The second letters of lanes. */
  async #secondsOf(tasks: readonly RedriveTask[]): Promise<Map<string, Second>> {
    const seconds = new Map<string, Second>()
    if (tasks.length === 0) return seconds
    const { store, subscription, share, settings } = this.#state.parts
    const lanes = tasks.map(({ lane }) => lane)
    const limits = { events: 2 * lanes.length, bytes: settings.pageBytes, perLane: 2 }
    for (const { lane, letters, next } of await store.letters.queues(
      subscription.name,
      share.partition,
      lanes,
      limits,
    )) {
      const [, second] = letters
      seconds.set(lane, second ? { sequence: second.sequence, position: second.event.position } : (next ?? 'none'))
    }
    return seconds
  }

  #begin(task: RedriveTask, second: Second | undefined): void {
    const { ledger, due, partition, flow, suspicion, waits } = this.#state
    const { lane, position } = task
    // The limits left no room to load the second letter; the lane comes up again.
    if (endsHead(task) && second === undefined) return
    this.#keptFromReading ||= second === 'none'
    const { breaker } = partition.held.get(lane) ?? {}
    if (breaker !== undefined) waits.drop(breaker, lane)
    ledger.begin(task)
    ledger.endTrials(suspicion.forget(position))
    flow.settled(lane, false)
    if (second !== undefined) ledger.advance(lane, second === 'none' ? undefined : second)
    if (partition.held.has(lane)) due.add(lane, 0)
  }
}

type Second = { readonly sequence: number; readonly position: number } | 'none'

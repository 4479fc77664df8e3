import type { RedriveTask } from '../../redrive/redrive.ts'
import { endsHead, fits, lanesAtOnce } from '../redriving.ts'
import type { Desk } from './desk.ts'

const askAgainMs = 50

/**
 * Begins the lanes of redrives: they are due from then on, and worked off as any other that is. That a lane was begun is committed
 * before its first letter is tried, so whoever comes after a death knows what may have been done. And that the only letter of one is
 * left out, before anything more of it is read: until then it is held, and somebody may still think better of it.
 */
export class Beginnings {
  readonly #desk: Desk
  /** Those of the last round. Until they are committed, the store gives them again. */
  #begun: readonly string[] = []
  /** One of them has to wait because its redrive must go slowly. */
  #isPaced = false
  /** Some of them flow again: nothing was read while that was on its way to the store. */
  #keptFromReading = false

  constructor(desk: Desk) {
    this.#desk = desk
  }

  /** A lane flows again because its head is left out, and the store does not have that yet. */
  get isLettingFlow(): boolean {
    const { ledger, partition } = this.#desk
    return this.#begun.some((lane) => !partition.held.has(lane) && ledger.touches(lane))
  }

  async take(): Promise<void> {
    const { redriving, partition, ledger, parts } = this.#desk
    await redriving.learn(partition.held.values())
    if (this.#begun.some((lane) => ledger.touches(lane))) return
    // That has its turn before the next ones, however many there are.
    if (this.#keptFromReading) {
      this.#keptFromReading = false
      return parts.wake()
    }
    const now = parts.runtime.clock.mono()
    const room = lanesAtOnce - ledger.underWay
    if (room <= 0 || !redriving.isDue(now)) return
    const tasks = await redriving.due(room)
    const admitted: RedriveTask[] = []
    this.#isPaced = false
    for (const task of tasks) if (admitted.length < room && this.#admits(task, admitted)) admitted.push(task)
    this.#begun = admitted.map(({ lane }) => lane)
    // Nothing but time lets more of them begin, and each question costs the store something.
    if (admitted.length === 0 && this.#isPaced) redriving.postpone(now + askAgainMs)
    const seconds = await this.#secondsOf(admitted.filter(endsHead))
    for (const task of admitted) this.#begin(task, seconds.get(task.lane))
  }

  /** Not one that is being tried at the moment, or of which not everything is in the store: it is given again. */
  #admits(task: RedriveTask, others: readonly RedriveTask[]): boolean {
    const { ledger, draining, partition, redriving } = this.#desk
    const { lane, redrive } = task
    if (draining.has(lane) || ledger.touches(lane)) return false
    if (!fits(task, partition.held.get(lane))) {
      ledger.passed(task)
      return false
    }
    const pace = redriving.paceOf(redrive)
    if (!pace) return true
    // Those that wait for their turn would be in the way of others that are due, and whoever cancels it means them too.
    const begun = others.filter((other) => other.redrive === redrive).length
    const isFull = begun + ledger.waiting(redrive, draining) >= Math.ceil(pace.most)
    this.#isPaced ||= isFull
    return !isFull
  }

  /** What stands behind the heads of lanes. */
  async #secondsOf(tasks: readonly RedriveTask[]): Promise<Map<string, Second>> {
    const seconds = new Map<string, Second>()
    if (tasks.length === 0) return seconds
    const { store, subscription, share, settings } = this.#desk.parts
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
    const { ledger, due, partition, flow, suspicion, waits } = this.#desk
    const { lane, position } = task
    // There was no room to look behind it; it is given again.
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

import { keptAttempts, mostAttempts } from '../../dead-letter/attempts.ts'
import { payloadOf } from '../../dead-letter/payload.ts'
import { redact, redactFailure } from '../../dead-letter/redact.ts'
import type { Event } from '../../event/event.ts'
import { exponential } from '../../failure/backoff.ts'
import { type Classified, classify } from '../../failure/classify.ts'
import { describeFailure, type Failure } from '../../failure/failure.ts'
import { type Decision, decide } from '../../failure/policy.ts'
import type { HandlerContext } from '../../handler/handler.ts'
import { deadly } from '../crash/suspicion.ts'
import type { Pass } from './breaker-waits.ts'
import type { HandlerState } from './handler-state.ts'
import type { HeldLaneDrain } from './held-lane-drain.ts'
import type { Entry } from './entry.ts'
import type { Flow } from './flow.ts'
import { type Track, wholePartition } from './tracks.ts'

/** How a handler holds a lane: until an operator acts, until a time, or while a breaker is open. */
type Holding =
  | { readonly status: 'parked'; readonly tries: number }
  | { readonly status: 'retrying'; readonly tries: number; readonly dueAt: number }
  | { readonly status: 'waiting'; readonly tries: number; readonly breaker: string }

/** An attempt that was made. */
export interface Tried {
  readonly event: Event
  readonly ctx: HandlerContext
  readonly pass: Pass
  /** By the monotonic clock. */
  readonly begunAt: number
  readonly tookMs: number
}

/** A retry within this time is made without a letter, but only a few times, because these attempts are not stored. */
const inPlaceMs = 250
const mostInPlace = 2
const patience = exponential('1s', { factor: 2, cap: '1m' })

/**
 * Decides what happens to an event after an attempt, or if no attempt was possible. Exactly one of these follows: the event has its
 * outcome (in the ledger), its lane is held (in the ledger), or it goes back to its track and is retried without counting the attempt.
 */
export class Verdicts {
  readonly #state: HandlerState
  readonly #drain: HeldLaneDrain
  /** Called when the partition is blocked, and when it continues. */
  readonly #tell: () => void

  constructor(handlerState: HandlerState, drains: HeldLaneDrain, tell: () => void) {
    this.#state = handlerState
    this.#drain = drains
    this.#tell = tell
  }

  succeeded(track: Track<Entry>, entry: Entry, { event, ctx, pass, begunAt, tookMs }: Tried, value: unknown): void {
    const { waits, reporter, dedup, ledger, flow, tracks } = this.#state
    waits.report(entry.lane, pass, true)
    reporter.completed(entry.record, ctx.attempt, tookMs)
    flow.settled(entry.lane, true)
    this.#answered(begunAt)
    const mark = dedup?.end(event, true, value)
    this.#over(entry, {
      live: () => ledger.applied(entry.record, mark),
      letter: () => ledger.resolved(entry, 'applied', mark),
    })
    tracks.end(track)
  }

  /** The event was already handled at another position. */
  repeated(track: Track<Entry>, entry: Entry, result: string | null | undefined): void {
    const { reporter, ledger, tracks } = this.#state
    reporter.skipped(entry.record, 'duplicate', result)
    this.#over(entry, { live: () => ledger.duplicate(), letter: () => ledger.repeated(entry) })
    tracks.end(track)
  }

  failed(track: Track<Entry>, entry: Entry, error: unknown, tried?: Tried): void {
    const { handler, partition, reporter, waits, flow, dedup, parts } = this.#state
    const { rules, outage } = handler.failure
    const found = classify(error, rules, partition.now())
    const failure = describeFailure(error, found.class, found.rule, found.evidence)
    // A permanent failure is caused by the event: the endpoint has answered.
    const isOwn = found.class === 'permanent' || found.skip !== undefined
    if (tried) {
      dedup?.end(tried.event, false)
      reporter.failed(entry.record, tried.ctx.attempt, tried.tookMs, failure)
      reporter.hook(handler.onError, error, tried.event, tried.ctx)
      waits.report(entry.lane, tried.pass, isOwn)
    }
    if (tried) this.#follow(entry)
    // With partition order, all later events wait for this one.
    if (flow.standstill?.why === 'order' && !entry.isLetter && tried?.pass.entry !== 'probe')
      return this.#stillBlocks(track, entry, found, failure)
    if (isOwn) {
      this.#answered(tried?.begunAt)
      return this.#decide(track, entry, found, failure)
    }
    if (flow.standstill) {
      if (tried && this.#decisionOf(entry, found).decision !== 'stop') flow.doubt(tried.begunAt)
      flow.probed(found.retryAfterMs)
      this.#tell()
    }
    // This was a probe of the breaker, not an attempt of the event. The breaker sets the time of the next probe.
    if (tried?.pass.entry === 'probe') {
      const { name } = tried.pass.breaker
      return this.defer(track, entry, handler.breaker?.key ? name : undefined, 0, failure)
    }
    if (flow.standstill) return this.#stepAside(track, entry)
    const asked = tried?.pass.entry === 'closed' && handler.breaker?.key ? tried.pass.breaker.name : entry.lane
    const alike = flow.failed(entry.lane, failure, asked)
    if (!alike || !outage) return this.#decide(track, entry, found, failure)
    const waitMs = Math.max(outage.backoff.delayMs(1, parts.runtime.random), found.retryAfterMs ?? 0)
    this.#stand(entry, 'outage', failure, outage.backoff, alike.size, waitMs)
    for (const lane of alike) this.#giveBack(lane)
    entry.tries = 0
    this.#putBack(track, entry)
  }

  unreadable(track: Track<Entry>, entry: Entry, failure: Failure): void {
    const { class: failureClass, rule, evidence = null } = failure
    this.#decide(track, entry, { class: failureClass, rule, evidence }, failure)
  }

  /** Parks an event that processes died over. */
  blame(track: Track<Entry>, entry: Entry, deaths: number): void {
    const failure = deadly(deaths, this.#state.parts.subscription.name, entry.record.position)
    this.#state.reporter.parked(entry.record, failure)
    this.#hold(track, entry, { status: 'parked', tries: entry.tries + 1 }, failure)
    this.#state.suspicion.blame(entry.record.position)
  }

  /** The breaker is open: the event waits, and no attempt is counted. */
  defer(track: Track<Entry>, entry: Entry, breaker: string | undefined, waitMs: number, failure?: Failure): void {
    const { handler, flow, waits, parts } = this.#state
    const name = breaker ?? handler.name
    const isOfLane = breaker !== undefined && handler.order !== 'partition'
    // A letter is already held, so its lane waits on its own even if the whole partition is blocked: its redrive ends, and an operator can
    // discard or edit it.
    if (isOfLane || entry.isLetter) {
      this.#hold(track, entry, { status: 'waiting', tries: entry.tries, breaker: name }, undefined)
      waits.postpone(name, parts.runtime.clock.mono() + waitMs)
    } else this.#putBack(track, entry)
    if (isOfLane) return
    waits.stand(name)
    if (flow.standstill) flow.probed(waitMs)
    else this.#stand(entry, 'breaker', failure, patience, 0, waitMs)
  }

  /** The attempt was not made. The event is tried in its turn, and no attempt is counted. */
  putOff(track: Track<Entry>, entry: Entry): void {
    this.#putBack(track, entry)
  }

  #decisionOf(entry: Entry, found: Classified): Decision {
    const { handler, parts, flow } = this.#state
    const failing = { failure: found, type: entry.record.type, tries: entry.tries + 1, inARow: flow.inARow }
    return decide(handler.failure, failing, parts.runtime.random)
  }

  #decide(track: Track<Entry>, entry: Entry, found: Classified, failure: Failure): void {
    const decision = this.#decisionOf(entry, found)
    switch (decision.decision) {
      case 'stop':
        // The backoff already includes the Retry-After of the endpoint.
        this.#stand(entry, decision.why, failure, decision.backoff)
        return this.#putBack(track, entry)
      case 'skip':
        return this.#skip(track, entry, failure, decision.reason)
      case 'park':
        return this.#park(track, entry, failure)
      case 'retry':
        // An operator's redrive gets one attempt, not all retries of the policy.
        if (this.#isRedriven(entry)) return this.#park(track, entry, failure)
        return this.#retry(track, entry, decision.delayMs, failure)
      default:
        decision satisfies never
    }
  }

  #park(track: Track<Entry>, entry: Entry, failure: Failure): void {
    const { flow, reporter } = this.#state
    flow.settled(entry.lane, false)
    reporter.parked(entry.record, failure)
    this.#hold(track, entry, { status: 'parked', tries: entry.tries + 1 }, failure)
  }

  #isRedriven({ lane, isLetter }: Entry): boolean {
    return isLetter && this.#state.partition.held.get(lane)?.redrive !== undefined
  }

  #retry(track: Track<Entry>, entry: Entry, delayMs: number, failure: Failure): void {
    const { parts, reporter, partition, handler } = this.#state
    const { clock } = parts.runtime
    entry.tries++
    reporter.nacked(entry.record, failure, delayMs)
    if (handler.order === 'partition' && !entry.isLetter) {
      remember(entry, failure)
      this.#standAt(entry, failure, delayMs)
      return this.#putBack(track, entry)
    }
    if (delayMs <= inPlaceMs && entry.unrecorded.length < mostInPlace) {
      remember(entry, failure)
      return this.#putBack(track, entry, clock.mono() + delayMs)
    }
    // Whole milliseconds, as databases store them.
    const dueAt = Math.ceil(partition.now() + delayMs)
    this.#hold(track, entry, { status: 'retrying', tries: entry.tries, dueAt }, failure)
  }

  /** Later events do not start before the skip is committed: after a death the event would be retried and might succeed. */
  #skip(track: Track<Entry>, entry: Entry, failure: Failure, said: string): void {
    const { reporter, ledger, flow } = this.#state
    flow.settled(entry.lane, false)
    // The reason is redacted, because every operator sees it; the failure keeps the original text.
    const reason = redact(said, payloadOf({ event: entry.record }))
    reporter.skipped(entry.record, reason)
    this.#over(entry, {
      live: () => {
        ledger.skipped(entry, failure, { by: 'policy', reason })
        ledger.passOver(track)
      },
      letter: () => {
        ledger.discarded(entry, failure, { by: 'policy', reason })
        ledger.passOver(track)
      },
    })
  }

  /** The event already blocks the partition. Its policy decides when it is retried, and whether it is skipped or parked. */
  #stillBlocks(track: Track<Entry>, entry: Entry, found: Classified, failure: Failure): void {
    const { flow, reporter } = this.#state
    const decision = this.#decisionOf(entry, found)
    if (decision.decision === 'skip') return this.#skip(track, entry, failure, decision.reason)
    if (decision.decision === 'park') return this.#park(track, entry, failure)
    if (decision.decision === 'retry') {
      entry.tries++
      remember(entry, failure)
      reporter.nacked(entry.record, failure, decision.delayMs)
      flow.probedUntil(decision.delayMs)
    } else {
      // The policy blocks: the wait grows each time.
      flow.probed(found.retryAfterMs)
    }
    this.#tell()
    this.#putBack(track, entry)
  }

  /** With partition order, nothing continues until this event was retried. */
  #standAt(entry: Entry, failure: Failure, waitMs: number): void {
    const { flow } = this.#state
    if (flow.standstill?.why === 'order') {
      flow.probed(waitMs)
      this.#tell()
    } else this.#stand(entry, 'order', failure, patience, 0, waitMs)
  }

  /** The event has its outcome. */
  #over(entry: Entry, record: { readonly live: () => void; readonly letter: () => void }): void {
    const { flow, window } = this.#state
    // All later events wait for this one.
    if (flow.standstill?.why === 'order' && !entry.isLetter) this.#answered(Number.POSITIVE_INFINITY)
    if (entry.isLetter) this.#drain.advance(entry, record.letter)
    else {
      record.live()
      window.finish(entry)
    }
    this.#endTrials(entry.record.position)
  }

  #endTrials(position: number): void {
    const { suspicion, ledger } = this.#state
    ledger.acquit(suspicion.lateOver(position))
    ledger.endTrials(suspicion.over(position))
  }

  /** The event is retried in its turn, and no attempt is counted. */
  #putBack(track: Track<Entry>, entry: Entry, readyAt = 0): void {
    const { suspicion, ledger, tracks } = this.#state
    ledger.acquit(suspicion.putOff(entry.record.position))
    track.entries.unshift(entry)
    tracks.end(track, readyAt)
  }

  /** The same while the partition is blocked: another lane is the next probe, even if it is not loaded yet. */
  #stepAside(track: Track<Entry>, entry: Entry): void {
    const { flow, tracks, draining, due, parts, ledger, suspicion } = this.#state
    if (!entry.isLetter || !flow.isAnybodys) return this.#putBack(track, entry)
    ledger.acquit(suspicion.putOff(entry.record.position))
    tracks.clear(track)
    draining.delete(entry.lane)
    due.add(entry.lane, parts.runtime.clock.mono())
  }

  #hold(track: Track<Entry>, entry: Entry, holding: Holding, failure: Failure | undefined): void {
    const { suspicion, suspects, ledger, tracks, draining, due, waits, window, parts, partition, flow } = this.#state
    const { clock } = parts.runtime
    const { position } = entry.record
    if (holding.status === 'parked') this.#endTrials(position)
    else ledger.acquit(suspicion.putOff(position))
    if (holding.status === 'waiting') suspects.wait(entry)
    // Its loaded letters are loaded again when it is due; events from the source are queued in the lane.
    const behind = tracks.clear(track)
    if (entry.isLetter) {
      draining.delete(entry.lane)
      ledger.heldOn(entry, holding, failure)
    } else {
      ledger.hold(entry, holding, failure)
      window.finish(entry)
      // If the whole partition is one track, later events wait there until an operator releases this one.
      const isHeldUp = track.name === wholePartition
      if (isHeldUp) {
        tracks.bar(wholePartition)
        if (flow.standstill?.why === 'order') flow.clear()
      }
      for (const one of behind) {
        if (isHeldUp) {
          tracks.add(wholePartition, one)
          continue
        }
        ledger.queued(one)
        window.finish(one)
      }
    }
    if (holding.status === 'retrying') due.add(entry.lane, clock.mono() + holding.dueAt - partition.now())
    if (holding.status === 'waiting') waits.add(holding.breaker, entry.lane)
  }

  /** A suspect failed. It may kill a process at the retry, so it is followed. */
  #follow(entry: Entry): void {
    const { suspicion, suspects, ledger } = this.#state
    const { position } = entry.record
    const isSuspect = (!suspicion.isOver && suspects.has(entry)) || suspicion.follows(position)
    if (isSuspect) ledger.endTrials(suspicion.failed(position))
  }

  /** The counted attempts of a lane were not caused by its event. */
  #giveBack(lane: string): void {
    const { ledger, partition, due, tracks, parts, running } = this.#state
    ledger.giveBack(lane, partition.now())
    if (partition.held.get(lane)?.status === 'retrying') due.add(lane, parts.runtime.clock.mono())
    // Also for a running entry, which is not in a track.
    for (const entry of running.keys()) if (entry.lane === lane) entry.tries = 0
    const waiting = tracks.get(lane)
    if (!waiting) return
    for (const entry of waiting.entries) entry.tries = 0
    tracks.rouse(waiting)
  }

  /** Blocks the partition. Status and log show the reason without values of the event. */
  #stand({ record }: Entry, ...[why, failure, ...rest]: Parameters<Flow['stand']>): void {
    const { flow, reporter } = this.#state
    const shown = failure && redactFailure(failure, payloadOf({ event: record }))
    flow.stand(why, shown, ...rest)
    reporter.stood(why, shown)
    this.#tell()
  }

  /** The endpoint answered. `begunAt` is the start of the attempt; default: now. */
  #answered(begunAt?: number): void {
    const { flow, parts } = this.#state
    if (!flow.answered(begunAt ?? parts.runtime.clock.mono())) return
    this.#state.reporter.resumed()
    this.#tell()
  }
}

/** Keeps a failure for a later letter. A letter stores a limited number, and a policy may retry for weeks. */
function remember({ unrecorded }: Entry, failure: Failure): void {
  unrecorded.push(failure)
  if (unrecorded.length > mostAttempts) unrecorded.splice(keptAttempts.first, 1)
}

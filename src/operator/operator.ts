import type { AuditEntry } from '../audit/audit.ts'
import type { Incident } from '../dead-letter/incident.ts'
import type { DeadLetter, Revision } from '../dead-letter/letter.ts'
import type { LetterName, LetterQuery, LetterStats } from '../dead-letter/letter-store.ts'
import type { Redrive, RedriveAct, RedriveLaneState } from '../redrive/redrive.ts'
import type { Runtime } from '../runtime/ports.ts'
import type { Store } from '../store.ts'
import type { Consumer, Subscription } from '../subscription/subscription.ts'
import type { AuditReport, Purged, PurgeOptions, ResetReport } from './deeds.ts'
import type { DryRun, DryRunOptions } from './dry-run.ts'
import type { ExportOptions, Imported, ImportOptions } from './export.ts'
import type { RedriveLaneReport, RedriveProgressReport, WatchOptions, Worked } from './progress.ts'
import type { Revised } from './revise.ts'
import type { ActOptions, Asked, Selection } from './selection.ts'
import type { StateAt, StateMoment, StateStep } from './state-at.ts'
import type { LetterView } from './view.ts'

export interface OperatorOptions extends Partial<Runtime> {
  readonly store: Store
  /** The same that the engines run: letters are decoded, tried and validated by them. */
  readonly subscriptions: readonly (Consumer | Subscription)[]
  /** Who does all of this, as the audit will have it. */
  readonly by: string
}

/**
 * What a person does with what is held. It owns no partition and starts nothing by itself: acts are asked for in the store, and carried
 * out by the engine that owns the lanes. Every act is in the audit, in the transaction that does it.
 */
export interface Operator {
  readonly by: string
  /** The names of the subscriptions it knows. */
  readonly subscriptions: readonly string[]

  // ---- Looking

  /** In order of their positions. `limit` 100 unless you say otherwise, 10,000 at the most; go on with `after`. */
  letters(query: LetterQuery): Promise<readonly DeadLetter[]>
  /** Throws `LETTER_UNKNOWN`. `behind`: how many of those that stand behind it; 10 unless you say otherwise. */
  letter(name: LetterName, options?: { readonly behind?: number }): Promise<LetterView>
  /** Writes down that somebody looks at the values of a payload, and why, and then shows it. */
  reveal(name: LetterName, reason: string): Promise<LetterView>
  stats(subscription: string): Promise<LetterStats>
  incidents(query: {
    readonly subscription: string
    readonly fingerprint?: string
    readonly limit?: number
  }): Promise<readonly Incident[]>

  // ---- Acting on letters

  /** How many lanes an act would be about now: what a person sees first, and gives as `expected`. */
  count(subscription: string, act: RedriveAct, selection: Selection): Promise<number>
  /**
   * Tries letters again, in the order of their lanes. Throws `LETTER_NOT_HEAD`, `REDRIVE_NOTHING`, `REDRIVE_CHANGED`, `REDRIVE_BUSY`; then
   * nothing was done. So do the next three.
   */
  redrive(subscription: string, selection: Selection, options: ActOptions): Promise<Asked>
  /** Leaves the heads out for good. Their lanes go on behind them, as by a redrive. */
  discard(subscription: string, selection: Selection, options: ActOptions): Promise<Asked>
  /** The same, but says that the heads were seen to elsewhere. */
  resolve(subscription: string, selection: Selection, options: ActOptions): Promise<Asked>
  /** The version that a lane waits for will never come: it goes on without it. */
  skip(subscription: string, selection: Selection, options: ActOptions): Promise<Asked>
  /** What would become of them, by the same code. Nothing is kept. */
  dryRun(subscription: string, selection: Selection, options?: DryRunOptions): Promise<DryRun>

  // ---- Redrives

  /** The newest first. */
  redrives(query?: { readonly subscription?: string; readonly limit?: number }): Promise<readonly Redrive[]>
  /** Throws `REDRIVE_UNKNOWN`. */
  findRedrive(id: string): Promise<Redrive>
  /** Its lanes in the order in which they are taken; those that failed with what they failed with. */
  redriveLanes(
    id: string,
    query?: { readonly state?: RedriveLaneState; readonly after?: number; readonly limit?: number },
  ): Promise<readonly RedriveLaneReport[]>
  /** How far it is, again and again, until it is over; the last is of when it was. */
  watch(id: string, options?: WatchOptions): AsyncIterable<RedriveProgressReport>
  /** Nothing more of it is begun. False if it was over already. */
  cancel(id: string, reason: string): Promise<boolean>
  /** Sees to it that a redrive is carried out: if nobody owns the partitions, this process does it, and leaves when it is over. */
  ensureWorked(id: string, options?: { readonly signal?: AbortSignal }): Promise<Worked>

  // ---- Editing

  /**
   * Gives a held letter other data to be tried with. It is checked like an event that is appended, and by its schema: an
   * `InvalidEventError` has the path. Throws `LETTER_UNKNOWN`, `LETTER_ENDED`, `LETTER_BUSY`.
   */
  revise(name: LetterName, data: unknown, reason: string): Promise<Revised>
  /** What `revise` would do, without doing it. */
  previewRevision(name: LetterName, data: unknown): Promise<Omit<Revised, 'number'>>
  /** Takes the newest revision back, until it was replayed. Also throws `REVISION_NONE`. */
  unrevise(name: LetterName, reason: string): Promise<Revised>
  revisions(name: LetterName): Promise<readonly (Revision & { readonly isTakenBack: boolean })[]>

  // ---- Looking back

  /** The row of a key at a moment, folded anew. Throws `STATE_NEEDS_FOLD` for what is no fold on the log. */
  stateAt(subscription: string, key: string, moment?: StateMoment): Promise<StateAt>
  /** The same, event by event. */
  steps(subscription: string, key: string, moment?: StateMoment): AsyncIterable<StateStep>

  // ---- Subscriptions, breakers, retention

  pause(subscription: string, reason: string): Promise<void>
  resume(subscription: string, reason: string): Promise<void>
  /** Empties a projection and begins it anew, see `Engine.reset`. */
  reset(subscription: string, reason: string): Promise<ResetReport>
  /** Opens a breaker for all processes until somebody resets it. */
  isolateBreaker(name: string, reason: string): Promise<void>
  resetBreaker(name: string, reason: string): Promise<void>
  purgeable(subscription: string, options?: Pick<PurgeOptions, 'olderThan'>): Promise<number>
  purge(subscription: string, options: PurgeOptions): Promise<Purged>

  // ---- The audit

  /** In order, those that follow a number. `limit` 100 unless you say otherwise. */
  audit(query?: { readonly after?: number; readonly limit?: number }): Promise<readonly AuditEntry[]>
  /** Walks the whole chain. `expected`: an end of it that was noted earlier, and must still be in it. */
  verifyAudit(options?: { readonly expected?: AuditReport['head'] }): Promise<AuditReport>

  // ---- Elsewhere

  /** Lines of NDJSON: a first one that says what it is, then letters, and events if their history is wanted. */
  exportLetters(options: ExportOptions): AsyncIterable<string>
  /**
   * Appends what an export has to a log that is empty, to see elsewhere what failed here. Into any other log it is refused
   * (`STORE_NOT_EMPTY`): there every subscription would take the events for new ones.
   */
  importLetters(lines: AsyncIterable<string> | Iterable<string>, options: ImportOptions): Promise<Imported>
}

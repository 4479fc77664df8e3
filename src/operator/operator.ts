import type { AuditEntry } from '../audit/audit.ts'
import { type AuditReport, verifyAudit } from '../audit/verify.ts'
import type { Incident } from '../dead-letter/incident.ts'
import type { DeadLetter, Revision } from '../dead-letter/letter.ts'
import type { LetterName, LetterQuery, LetterStats } from '../dead-letter/letter-store.ts'
import type { Redrive, RedriveAct, RedriveLaneState } from '../redrive/redrive.ts'
import type { Selected } from '../redrive/selected.ts'
import { checkOptions } from '../runtime/options.ts'
import type { ResetReport } from '../subscription/subscription-store.ts'
import { ask, select } from './ask.ts'
import type { BreakerState } from '../breaker/breaker.ts'
import { findBreaker, type IsolateOptions, isolateBreaker, resetBreaker } from './breakers.ts'
import { type Purged, type PurgeOptions, pause, purge, purgeable, reset, resume } from './deeds.ts'
import { type DryRun, type DryRunOptions, dryRun } from './dry-run.ts'
import { type ExportOptions, exportLetters } from './export.ts'
import { type Imported, type ImportOptions, importLetters } from './import.ts'
import { findLetter, letterQuery } from './letters.ts'
import { type OperatorOptions, operatorParts, whole } from './parts.ts'
import {
  findRedrive,
  type RedriveLaneReport,
  type RedriveProgressReport,
  redriveLanes,
  type WatchOptions,
  watchRedrive,
} from './progress.ts'
import { prepareRevision, type Revised, type RevisionInput, revise, unrevise } from './revise.ts'
import type { ActOptions, Asked, Selection } from './selection.ts'
import { type StateAt, type StateMoment, type StateStep, stateAt, statesOf } from './state-at.ts'
import { type LetterView, viewLetter } from './view.ts'
import { ensureWorked, type Worked, type WorkOptions } from './worked.ts'

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

  /** What an act would be about now: how many lanes, and the digest of them as they are, which the act takes as `expected`. */
  select(subscription: string, act: RedriveAct, selection: Selection): Promise<Selected>
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
  /** What would become of them, by the same code. Nothing is kept. Throws `LETTER_NOT_HEAD` and `REDRIVE_NOTHING` like the others. */
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
  /**
   * Sees to it that a redrive is carried out, and resolves when it is over: while no process runs its subscription, this one lets its lanes go
   * itself, reads nothing else, and leaves.
   */
  ensureWorked(id: string, options?: WorkOptions): Promise<Worked>

  // ---- Editing

  /**
   * Gives a held letter other data to be tried with, in the schema version of the letter: upcasts come after it. It is checked like an event
   * that is appended, and by its schema: an `InvalidEventError` has the path. Throws `LETTER_UNKNOWN`, `LETTER_ENDED`, `LETTER_BUSY`.
   */
  revise(name: LetterName, revision: RevisionInput, reason: string): Promise<Revised>
  /** What `revise` would do, without doing it. */
  previewRevision(name: LetterName, revision: RevisionInput): Promise<Omit<Revised, 'number'>>
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
  /** As all processes share it. Throws `BREAKER_UNKNOWN`, as do the next two; then nothing was done. */
  breaker(name: string, options?: IsolateOptions): Promise<BreakerState>
  /**
   * Opens a breaker for all processes until an operator resets it. Every process follows within a second. A name that the store does not have
   * is refused, because it may be misspelled; with `new: true` a breaker is isolated that never failed.
   */
  isolateBreaker(name: string, reason: string, options?: IsolateOptions): Promise<void>
  /** Closes it for all processes. What waits for it is tried within a second, however long its cooldown was. */
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

const mostListed = 1_000

export function createOperator(options: OperatorOptions): Operator {
  const parts = operatorParts(options)
  const { store } = parts

  return {
    by: parts.by,
    subscriptions: [...parts.subscriptions.keys()],

    letters: async (query) => {
      const checked = letterQuery(query)
      await parts.partitionsOf(checked.subscription)
      return store.letters.list(checked)
    },
    letter: (name, given) => viewLetter(parts, name, given),
    reveal: async (name, given) => {
      const reason = parts.reasonOf(given)
      const { subscription, partition, event } = await findLetter(store, name)
      const target = `${subscription}/${event.position}`
      await store.audit.record(parts.deed({ act: 'letter.reveal', target, reason, details: { partition } }))
      return viewLetter(parts, name)
    },
    stats: async (subscription) => {
      await parts.partitionsOf(subscription)
      return store.letters.stats(subscription)
    },
    incidents: async (query) => {
      checkOptions(query, 'incidents', ['subscription', 'fingerprint', 'limit'])
      const { subscription, fingerprint, limit = 100 } = query
      await parts.partitionsOf(subscription)
      const which = fingerprint === undefined ? {} : { fingerprint }
      return store.letters.incidents({ subscription, ...which, limit: whole(limit, 'limit', 1, mostListed) })
    },

    select: (subscription, act, selection) => select(parts, subscription, act, selection),
    redrive: (subscription, selection, given) => ask(parts, subscription, 'redrive', selection, given),
    discard: (subscription, selection, given) => ask(parts, subscription, 'discard', selection, given),
    resolve: (subscription, selection, given) => ask(parts, subscription, 'resolve', selection, given),
    skip: (subscription, selection, given) => ask(parts, subscription, 'skip', selection, given),
    dryRun: (subscription, selection, given) => dryRun(parts, subscription, selection, given),

    redrives: async (query = {}) => {
      checkOptions(query, 'redrives', ['subscription', 'limit'])
      const { subscription, limit = 100 } = query
      const of = subscription === undefined ? {} : { subscription }
      return store.redrives.list({ ...of, limit: whole(limit, 'limit', 1, mostListed) })
    },
    findRedrive: (id) => findRedrive(parts, id),
    redriveLanes: (id, query) => redriveLanes(parts, id, query),
    watch: (id, given) => watchRedrive(parts, id, given),
    cancel: async (id, given) => {
      const reason = parts.reasonOf(given)
      const { subscription, lanes } = await findRedrive(parts, id)
      const details = { redrive: id, lanes }
      return store.redrives.cancel(id, parts.deed({ act: 'redrive.cancel', target: subscription, reason, details }))
    },
    ensureWorked: (id, given) => ensureWorked(parts, id, given),

    revise: (name, revision, reason) => revise(parts, name, revision, reason),
    previewRevision: async (name, revision) => {
      const { changes } = await prepareRevision(parts, name, revision)
      return { changes }
    },
    unrevise: (name, reason) => unrevise(parts, name, reason),
    revisions: async (name) => {
      const { subscription, partition, event } = await findLetter(store, name)
      return store.letters.revisions({ subscription, partition, position: event.position })
    },

    stateAt: (subscription, key, moment) => stateAt(parts, subscription, key, moment),
    steps: (subscription, key, moment) => statesOf(parts, subscription, key, moment),

    pause: (subscription, reason) => pause(parts, subscription, reason),
    resume: (subscription, reason) => resume(parts, subscription, reason),
    reset: (subscription, reason) => reset(parts, subscription, reason),
    breaker: (name, given) => findBreaker(parts, name, given),
    isolateBreaker: (name, reason, given) => isolateBreaker(parts, name, reason, given),
    resetBreaker: (name, reason) => resetBreaker(parts, name, reason),
    purgeable: (subscription, given) => purgeable(parts, subscription, given),
    purge: (subscription, given) => purge(parts, subscription, given),

    audit: async (query = {}) => {
      checkOptions(query, 'audit', ['after', 'limit'])
      const { after = 0, limit = 100 } = query
      return store.audit.list(whole(after, 'after', 0, Number.MAX_SAFE_INTEGER), whole(limit, 'limit', 1, 10_000))
    },
    verifyAudit: async (given = {}) => {
      checkOptions(given, 'verifyAudit', ['expected'])
      return verifyAudit(store.audit, given.expected)
    },

    exportLetters: (given) => exportLetters(parts, given),
    importLetters: (lines, given) => importLetters(parts, lines, given),
  }
}

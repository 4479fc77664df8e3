import type { AuditEntry } from '../audit/audit.ts'
import { type AuditReport, verifyAudit } from '../audit/verify.ts'
import type { Incident } from '../dead-letter/incident.ts'
import type { DeadLetter, Revision } from '../dead-letter/letter.ts'
import type { LetterName, LetterQuery, LetterStats } from '../dead-letter/letter-store.ts'
import { readStatus, type StoreStatus } from '../engine/process/status.ts'
import type { Redrive, RedriveAct, RedriveLaneState } from '../redrive/redrive.ts'
import type { Selected } from '../redrive/selected.ts'
import { checkOptions, whole } from '../runtime/options.ts'
import { logSource } from '../source/source.ts'
import type { ResetReport } from '../subscription/subscription-store.ts'
import { ask, select } from './ask.ts'
import type { BreakerState } from '../breaker/breaker.ts'
import { findBreaker, type IsolateOptions, isolateBreaker, resetBreaker } from './breakers.ts'
import { pause, reset, resume } from './deeds.ts'
import { type DryRun, type DryRunOptions, dryRun } from './dry-run.ts'
import { type ExportOptions, exportLetters } from './export.ts'
import { type Imported, type ImportOptions, importLetters } from './import.ts'
import { letterQuery } from '../dead-letter/query.ts'
import { findLetter } from './letters.ts'
import { type OperatorOptions, type OperatorParts, operatorParts } from './parts.ts'
import {
  findRedrive,
  type RedriveLaneReport,
  type RedriveProgressReport,
  redriveLanes,
  type WatchOptions,
  watchRedrive,
} from './progress.ts'
import { type Purgeable, type Purged, type PurgeOptions, purge, purgeable } from './purge.ts'
import { type DiffOptions, diffRebuild, type RebuildDiff } from './rebuild/diff.ts'
import { type RebuildOptions, type Rebuilt, rebuild } from './rebuild/rebuild.ts'
import { type DropOptions, dropRebuild, type Switched, type SwitchOptions, switchRebuild } from './rebuild/switch.ts'
import { prepareRevision, type Revised, type RevisionInput, revise, unrevise } from './revise.ts'
import type { ActOptions, Asked, Selection } from './selection.ts'
import { type StateAt, type StateMoment, type StateStep, stateAt, statesOf } from './state-at.ts'
import { type LetterView, viewLetter } from './view.ts'
import { ensureWorked, type Worked, type WorkOptions } from './worked.ts'

/**
 * The operations of an operator. An operator owns no partition: it records an act on lanes in the store, and the engine that owns the lanes
 * performs it. Each act is written to the audit, with its author and its reason, in the same transaction.
 */
export interface Operator {
  readonly by: string
  /** The same operator with another author: its acts are audited under that name. */
  as(by: string): Operator
  /** The names of the subscriptions that were passed to `createOperator`. */
  readonly subscriptions: readonly string[]

  // ---- Reading

  /** The state of each subscription as the store has it: pauses, lag, held lanes, breakers. Needs no running engine. */
  status(): Promise<StoreStatus>
  /** Ordered by position. `limit`: at most 10,000; default: 100. For the next page, pass the last position as `after`. */
  letters(query: LetterQuery): Promise<readonly DeadLetter[]>
  /** Throws `LETTER_UNKNOWN`. `behind`: how many later letters of the same lane to include; default: 10. */
  letter(name: LetterName, options?: { readonly behind?: number }): Promise<LetterView>
  /** Like `letter`, for showing the values of the payload. The audit records the operator and the reason first. */
  reveal(name: LetterName, reason: string): Promise<LetterView>
  stats(subscription: string): Promise<LetterStats>
  incidents(query: {
    readonly subscription: string
    readonly fingerprint?: string
    /** Only incidents with held letters. Default: false. */
    readonly open?: boolean
    readonly limit?: number
  }): Promise<readonly Incident[]>

  // ---- Acting on letters

  /** Counts the lanes that an act would change now, with a digest of their state. The act accepts the digest as `expected`. */
  select(subscription: string, act: RedriveAct, selection: Selection): Promise<Selected>
  /**
   * Processes held letters again, each lane in order. Throws `LETTER_NOT_HEAD`, `REDRIVE_NOTHING`, `REDRIVE_CHANGED` or `REDRIVE_BUSY`
   * without changing anything; `discard`, `resolve` and `skip` do the same.
   */
  redrive(subscription: string, selection: Selection, options: ActOptions): Promise<Asked>
  /** Removes the head of each lane permanently, without processing it, and redrives the rest of the lane. */
  discard(subscription: string, selection: Selection, options: ActOptions): Promise<Asked>
  /** Like `discard`, but records that the heads were handled manually. */
  resolve(subscription: string, selection: Selection, options: ActOptions): Promise<Asked>
  /** Continues lanes that wait for a missing version, without that version. */
  skip(subscription: string, selection: Selection, options: ActOptions): Promise<Asked>
  /** Runs the same code as a redrive and reports the result, without keeping any change. Throws `LETTER_NOT_HEAD` and `REDRIVE_NOTHING`. */
  dryRun(subscription: string, selection: Selection, options?: DryRunOptions): Promise<DryRun>

  // ---- Redrives

  /** Newest first. */
  redrives(query?: { readonly subscription?: string; readonly limit?: number }): Promise<readonly Redrive[]>
  /** Throws `REDRIVE_UNKNOWN`. */
  findRedrive(id: string): Promise<Redrive>
  /** The lanes of a redrive in processing order. A failed lane has its failure. */
  redriveLanes(
    id: string,
    query?: { readonly state?: RedriveLaneState; readonly after?: number; readonly limit?: number },
  ): Promise<readonly RedriveLaneReport[]>
  /** Yields the progress repeatedly until the redrive ends. The last report is the final state. */
  watch(id: string, options?: WatchOptions): AsyncIterable<RedriveProgressReport>
  /** No further lane is started. Returns false if the redrive has already ended. */
  cancel(id: string, reason: string): Promise<boolean>
  /**
   * Waits until a redrive ends. If no process runs its subscription, this process starts an engine that processes the letters of the redrive
   * and no new events, and stops it afterwards.
   */
  ensureWorked(id: string, options?: WorkOptions): Promise<Worked>

  // ---- Editing

  /**
   * Replaces the data that a held letter is processed with. The data has the schema version of the letter; upcasts run after it. It is
   * validated like an appended event, and by its schema: an `InvalidEventError` names the path. Throws `LETTER_UNKNOWN`, `LETTER_ENDED`,
   * `LETTER_BUSY`.
   */
  revise(name: LetterName, revision: RevisionInput, reason: string): Promise<Revised>
  /** Validates a revision and returns its changes without storing it. */
  previewRevision(name: LetterName, revision: RevisionInput): Promise<Omit<Revised, 'number'>>
  /** Undoes the newest revision. Possible until the letter is processed. Also throws `REVISION_NONE`. */
  unrevise(name: LetterName, reason: string): Promise<Revised>
  revisions(name: LetterName): Promise<readonly (Revision & { readonly isTakenBack: boolean })[]>

  // ---- Past states

  /** The row of a key at an earlier point, folded again from the log. Throws `STATE_NEEDS_FOLD` if the subscription is not a fold on the log. */
  stateAt(subscription: string, key: string, moment?: StateMoment): Promise<StateAt>
  /** Like `stateAt`, but yields the row before and after each event. */
  steps(subscription: string, key: string, moment?: StateMoment): AsyncIterable<StateStep>

  // ---- Subscriptions, breakers, retention

  /**
   * Pauses the subscription in all processes until an operator resumes it. After the call returns, nothing of the subscription is committed.
   * An engine that uses the same store object stops at once; other engines stop within a heartbeat.
   */
  pause(subscription: string, reason: string): Promise<void>
  resume(subscription: string, reason: string): Promise<void>
  /**
   * Empties a projection and starts it again. One transaction removes its rows (for SQL: runs its `reset`), its checkpoints, its held lanes
   * and their letters; then all events are applied again. Until then readers see an incomplete table; `rebuild` avoids that with a second
   * table. A rebuild in progress is dropped.
   */
  reset(subscription: string, reason: string): Promise<ResetReport>
  /** The state that all processes share. Throws `BREAKER_UNKNOWN`, as do `isolateBreaker` and `resetBreaker`, without changing anything. */
  breaker(name: string, options?: IsolateOptions): Promise<BreakerState>
  /**
   * Opens a breaker for all processes until an operator resets it. Each process follows within a second. A name that is not in the store
   * is rejected, because it may be misspelled. To isolate a breaker that never failed, pass `new: true`.
   */
  isolateBreaker(name: string, reason: string, options?: IsolateOptions): Promise<void>
  /** Closes a breaker for all processes. Lanes that wait for it are tried within a second, regardless of the cooldown. */
  resetBreaker(name: string, reason: string): Promise<void>
  /** Counts the letters that a purge would remove now, with a digest of them. `purge` accepts the digest as `expected`. */
  purgeable(subscription: string, options?: Pick<PurgeOptions, 'olderThan'>): Promise<Purgeable>
  /** Removes old resolved letters, except those with a revision. Throws `PURGE_CHANGED` without changing anything. */
  purge(subscription: string, options: PurgeOptions): Promise<Purged>

  // ---- Versions of a projection

  /**
   * Builds this program's version of a projection in a separate table while the live version continues. No handler is called. A rebuild can
   * be stopped and started again at any time, and several processes can work on it. Throws `REBUILD_LIVE`.
   */
  rebuild(subscription: string, options: RebuildOptions): Promise<Rebuilt>
  /** Compares the rows of a rebuilt version with the live rows in one snapshot. Only for folds. Throws `REBUILD_UNKNOWN`. */
  diffRebuild(subscription: string, options?: DiffOptions): Promise<RebuildDiff>
  /**
   * Makes a rebuilt version the live one, in one transaction. The previous version is kept; to go back, call `switchRebuild` with its
   * `version`. Throws `REBUILD_UNKNOWN`, `REBUILD_LIVE`, `REBUILD_BEHIND` or `REBUILD_STRAYS` without changing anything.
   */
  switchRebuild(subscription: string, options: SwitchOptions): Promise<Switched>
  /** Removes a version that is not live, including its table. Throws `REBUILD_UNKNOWN` and `REBUILD_LIVE`. */
  dropRebuild(subscription: string, options: DropOptions): Promise<void>

  // ---- The audit

  /** Entries in order. `after`: the number of the last entry already read; default: 0. `limit`: at most 10,000; default: 100. */
  audit(query?: { readonly after?: number; readonly limit?: number }): Promise<readonly AuditEntry[]>
  /** Verifies the whole hash chain. `expected`: a `head` from an earlier report, which the chain must still contain. */
  verifyAudit(options?: { readonly expected?: AuditReport['head'] }): Promise<AuditReport>

  // ---- Export and import

  /** Lines of NDJSON: a header, then letters, and with `history` also the earlier events of their keys. */
  exportLetters(options: ExportOptions): AsyncIterable<string>
  /**
   * Appends the events of an export to an empty log, to reproduce failures in another environment. Throws `STORE_NOT_EMPTY` if the log has
   * events: its subscriptions would process the imported events as new ones.
   */
  importLetters(lines: AsyncIterable<string> | Iterable<string>, options: ImportOptions): Promise<Imported>
}

const mostListed = 1_000

export function createOperator(options: OperatorOptions): Operator {
  return operatorOf(operatorParts(options))
}

function operatorOf(parts: OperatorParts): Operator {
  const { store, runtime } = parts

  return {
    by: parts.by,
    as: (by) => operatorOf(parts.as(by)),
    subscriptions: [...parts.subscriptions.keys()],

    status: () => {
      const watched = Array.from(parts.subscriptions.values(), ({ name, source = logSource(store.log) }) => ({
        name,
        source,
        perSecond: 0,
      }))
      return readStatus(store, watched, runtime.clock)
    },
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
      checkOptions(query, 'incidents', ['subscription', 'fingerprint', 'open', 'limit'])
      const { subscription, fingerprint, open = false, limit = 100 } = query
      await parts.partitionsOf(subscription)
      const which = fingerprint === undefined ? {} : { fingerprint }
      return store.letters.incidents({
        subscription,
        ...which,
        open,
        limit: whole(limit, 'limit', 1, mostListed),
      })
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

    rebuild: (subscription, given) => rebuild(parts, subscription, given),
    diffRebuild: (subscription, given) => diffRebuild(parts, subscription, given),
    switchRebuild: (subscription, given) => switchRebuild(parts, subscription, given),
    dropRebuild: (subscription, given) => dropRebuild(parts, subscription, given),

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

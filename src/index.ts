export {
  type Breaker,
  type BreakerEntry,
  type BreakerHooks,
  type BreakerPass,
  type BreakerSettings,
  type BreakerState,
  type CallOptions,
  type CreateBreakerOptions,
  createBreaker,
} from './breaker/breaker.ts'
export type { BreakerRecord, BreakerStore } from './breaker/breaker-store.ts'
export { type Breakers, type BreakersOptions, createBreakers } from './breaker/breakers.ts'
export { BreakerOpenError } from './breaker/open-error.ts'
export { type BreakerOptions, breakerSettings } from './breaker/settings.ts'
export { type Copied, type CopyCounts, type CopyOptions, type CopyProgress, copyStore } from './archive/copy.ts'
export {
  type Commands,
  type CommandsOptions,
  createCommands,
  type Decide,
  type DecideContext,
  type Decided,
  type DecidedEvent,
  type ExecuteOptions,
  type Executed,
} from './command/commands.ts'
export type { CommandRetry } from './command/retry.ts'
export {
  type Config,
  type ConfigEngineOptions,
  defineConfig,
  type PostgresChoice,
  type StoreChoice,
} from './config/config.ts'
export type { AuditEntry, Deed } from './audit/audit.ts'
export type { AuditReport } from './audit/verify.ts'
export type { Incident, IncidentState } from './dead-letter/incident.ts'
export type { Attempt, DeadLetter, HeldLane, HeldStatus, LetterStatus, Revision } from './dead-letter/letter.ts'
export type {
  HeldSummary,
  LaneSummary,
  LetterFilter,
  LetterName,
  LetterQuery,
  LetterStats,
} from './dead-letter/letter-store.ts'
export { payloadOf } from './dead-letter/payload.ts'
export { redact, redactFailure } from './dead-letter/redact.ts'
export { shapeOf } from './dead-letter/shape.ts'
export type { StackFrames, StackLine } from './dead-letter/stack.ts'
export { createEngine, type Engine, type EngineOptions } from './engine/process/engine.ts'
export type { EngineEventName, EngineEvents, Listener, Logger } from './engine/events.ts'
export type { SubscriptionState } from './engine/ownership/subscription-state.ts'
export type {
  BreakerStatus,
  EngineStatus,
  LaneStatus,
  PartitionStatus,
  StoredStatus,
  StoredSubscriptionStatus,
  StoreStatus,
  SubscriptionStatus,
} from './engine/process/status.ts'
export type { Difference, Verification, VerifyOptions } from './verify/verify.ts'
export {
  CommandConflictError,
  type ErrorCode,
  EventIdConflictError,
  ExpectedVersionError,
  errorCodes,
  HoldfastError,
  InvalidEventError,
  StoreError,
} from './errors.ts'
export {
  type DataOf,
  defineEvents,
  type EventCatalog,
  type EventOf,
  evolved,
  type TypeName,
  type Upcast,
} from './event/catalog.ts'
export type { Event, Metadata, RecordedEvent } from './event/event.ts'
export { diffJson, type JsonChange } from './event/diff.ts'
export { contentId } from './event/identity.ts'
export type { Json } from './event/json.ts'
export type { StandardSchema } from './event/standard-schema.ts'
export {
  type Action,
  block,
  type PauseOptions,
  park,
  pause,
  type Retry,
  type RetryAction,
  type RetryOptions,
  retry,
  skip,
} from './failure/action.ts'
export {
  type Backoff,
  type BackoffOptions,
  delays,
  exponential,
  fixed,
  type Jitter,
  linear,
} from './failure/backoff.ts'
export { type Classified, classify } from './failure/classify.ts'
export { type Failure, type FailureClass, failureClasses } from './failure/failure.ts'
export {
  type Decision,
  decide,
  definePolicy,
  type Failing,
  type OutageSettings,
  type Policy,
  type PolicyOptions,
  type RetryBudget,
} from './failure/policy.ts'
export {
  bounded,
  type CategorisedOptions,
  categorised,
  categorisedBreaker,
  consistencyFirst,
  differentiated,
  differentiatedBreaker,
  recovering,
} from './failure/presets.ts'
export {
  type FailedAttempt,
  type RetryContext,
  retryWithBackoff,
  type RetryWithBackoffOptions,
} from './failure/retry.ts'
export type { Rule } from './failure/rules.ts'
export { FailureError, failure, type SaidOptions } from './failure/said.ts'
export { customPolicy, noRetry, only } from './failure/special.ts'
export type { Draft, DraftOf } from './log/admit.ts'
export { type Appended, type AppendOptions, createLog, type Log, type LogOptions, type ReadOptions } from './log/log.ts'
export type { ExpectedVersion, Gap, GapHolder, LogPage } from './log/log-store.ts'
export type { Logged, LoggedOf } from './log/logged.ts'
export {
  defineProjection,
  type Projection,
  type ProjectionDefinition,
} from './projection/projection.ts'
export type { Frozen } from './projection/row-types.ts'
export type { SqlProjection, SqlProjectionDefinition } from './projection/sql-projection.ts'
export {
  defineHandler,
  type Handler,
  type HandlerContext,
  type HandlerDefinition,
  type HandlerLogger,
  type HandlerOrder,
} from './handler/handler.ts'
export type { Purgeable, Purged, PurgeOptions } from './operator/purge.ts'
export type { IsolateOptions } from './operator/breakers.ts'
export type { DryLane, DryLetter, DryOutcome, DryRun, DryRunOptions } from './operator/dry-run.ts'
export type { ExportOptions } from './operator/export.ts'
export type { Imported, ImportOptions } from './operator/import.ts'
export { createOperator, type Operator } from './operator/operator.ts'
export type { OperatorOptions } from './operator/parts.ts'
export type { RedriveLaneReport, RedriveProgressReport, WatchOptions } from './operator/progress.ts'
export type { Revised, RevisionInput } from './operator/revise.ts'
export type { ActOptions, Asked, Selection, WholeLanes } from './operator/selection.ts'
export type { StateAt, StateMoment, StateRow, StateStep } from './operator/state-at.ts'
export type { Decoded, LetterView } from './operator/view.ts'
export type { Worked, WorkOptions } from './operator/worked.ts'
export { type ListOptions, type Page, type Reader, type ReadRow, read, type Where } from './projection/read.ts'
export type { Redrive, RedriveAct, RedriveLane, RedriveLaneState, RedriveStatus } from './redrive/redrive.ts'
export type { Selected } from './redrive/selected.ts'
export type { DiffOptions, RebuildDiff, RowDifference } from './operator/rebuild/diff.ts'
export type { Generation } from './rebuild/generation.ts'
export type { RebuildProgress } from './rebuild/progress.ts'
export type { RebuildEnd, RebuildOptions, Rebuilt } from './operator/rebuild/rebuild.ts'
export type { DropOptions, Switched, SwitchOptions } from './operator/rebuild/switch.ts'
export type { Duration } from './runtime/duration.ts'
export type { Clock, Random, Runtime, Timers, Watchdog } from './runtime/ports.ts'
export type { Share } from './source/share.ts'
export type { Source, SourcePage } from './source/source.ts'
export type { Store } from './store.ts'
export type { ResetReport, RowChange } from './subscription/subscription-store.ts'
export type { Checkpoint, Counts } from './subscription/checkpoint.ts'
export {
  defineSubscription,
  type Filter,
  type Subscription,
  type SubscriptionOptions,
} from './subscription/subscription.ts'

// `holdfast/store`: what you need to write a store. The ports with all types of their signatures, and the rules that all stores share. The
// contract suite of `holdfast/testing` defines what a store must do.

export type { Store, StoreMoment } from './store.ts'

export type {
  AppendOutcome,
  AppendWith,
  ExpectedVersion,
  Gap,
  GapHolder,
  KeyedEvent,
  Lag,
  LogPage,
  LogStore,
  NewEvent,
  PageLimits,
} from './log/log-store.ts'
export type { RecordedEvent } from './event/event.ts'
export { isIn, type Share, slotOf } from './source/share.ts'
export { appendCounts, firstCounts } from './log/deed.ts'

export type {
  AttendRequest,
  ClaimOutcome,
  ClaimRequest,
  Commit,
  CommitOutcome,
  LaneWrite,
  Lease,
  LetterChange,
  Member,
  PartitionState,
  PartitionView,
  Pause,
  Range,
  Registered,
  ResetReport,
  RowChange,
  SubscriptionKind,
  StoredSubscription,
  SubscriptionSpec,
  SubscriptionStore,
  SubscriptionView,
  Transaction,
  Trial,
} from './subscription/subscription-store.ts'
export type { Checkpoint, Counts } from './subscription/checkpoint.ts'
export { pauseCounts, resetCounts, resetReport } from './subscription/deed.ts'
export { checkOrder, type OrderFacts } from './subscription/order.ts'
export type { HandlerOrder } from './handler/handler.ts'

export type {
  HeldSummary,
  LaneSummary,
  LetterFilter,
  LetterName,
  LetterPlace,
  LetterQuery,
  LetterQueue,
  LetterRef,
  LetterStats,
  LetterStore,
  QueueLimits,
  ReviseOutcome,
} from './dead-letter/letter-store.ts'
export type {
  Attempt,
  DeadLetter,
  Ending,
  HeldLane,
  HeldStatus,
  LetterStatus,
  NewLetter,
  Revision,
} from './dead-letter/letter.ts'
export type { Incident, IncidentState } from './dead-letter/incident.ts'
export type { Failure, FailureClass } from './failure/failure.ts'

export type {
  AskOutcome,
  Redrive,
  RedriveAct,
  RedriveLane,
  RedriveLaneState,
  RedriveProgress,
  RedriveRequest,
  RedriveStatus,
  RedriveTask,
} from './redrive/redrive.ts'
export type { RedriveStore } from './redrive/redrive-store.ts'
export { isActedOn } from './redrive/acts.ts'
export { type FrozenSet, freeze, type Selected, type SelectedHead, selectedOf } from './redrive/selected.ts'
export { type NextStage, nextStage, type Stage } from './redrive/stages.ts'

export type {
  BeginOutcome,
  BeginRequest,
  Decision as RebuildDecision,
  DropOutcome,
  Gap as RebuildGap,
  RebuildStore,
  SwitchOutcome,
  SwitchRequest,
} from './rebuild/rebuild-store.ts'
export { type Generation, generationName, generationTableName } from './rebuild/generation.ts'
export { dropCounts, switchCounts } from './rebuild/deed.ts'

export type {
  ColumnSpec,
  ColumnType,
  ColumnValue,
  Comparison,
  Condition,
  ListedRow,
  RowQuery,
  RowStore,
  RowWrite,
  StoredRow,
  TableSpec,
} from './projection/row-store.ts'
export type { InboxMark, InboxStore } from './handler/inbox-store.ts'
export type { BreakerRecord, BreakerStore } from './breaker/breaker-store.ts'
export type { BreakerState } from './breaker/breaker.ts'
export { type AuditEntry, type AuditStore, chain, checkDeed, type Deed, noEntry, withCounts } from './audit/audit.ts'

export type {
  ArchivedEvent,
  ArchivedIncident,
  ArchivedLane,
  ArchivedRedrive,
  ArchivedRedriveLane,
  ArchivedRevision,
  ArchivePart,
} from './archive/archive.ts'

export { type ErrorCode, HoldfastError, StoreError } from './errors.ts'

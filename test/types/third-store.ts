// A store that is not ours, typed by `holdfast/store` alone. It is compiled and never run: every member is declared with the types that
// an author would write, so it fails to compile when a port needs a type that the door does not export.
import type {
  AppendOutcome,
  AppendWith,
  ArchivePart,
  AskOutcome,
  AttendRequest,
  AuditEntry,
  AuditStore,
  BeginOutcome,
  BeginRequest,
  BreakerRecord,
  BreakerStore,
  ClaimOutcome,
  ClaimRequest,
  Commit,
  CommitOutcome,
  DeadLetter,
  Deed,
  DropOutcome,
  ExpectedVersion,
  Generation,
  HeldLane,
  InboxStore,
  Lease,
  LetterStore,
  LogStore,
  NewEvent,
  PartitionState,
  Pause,
  RebuildDecision,
  RebuildStore,
  Redrive,
  RedriveLane,
  RedriveLaneState,
  RedriveRequest,
  RedriveStore,
  RedriveTask,
  Registered,
  ResetReport,
  RowChange,
  RowStore,
  Selected,
  Store,
  StoreMoment,
  StoredSubscription,
  SubscriptionSpec,
  SubscriptionStore,
  SubscriptionView,
  SwitchOutcome,
  SwitchRequest,
  Transaction,
} from 'holdfast/store'
import { chain, noEntry } from 'holdfast/store'

class Subscriptions implements SubscriptionStore {
  declare readonly register: (spec: SubscriptionSpec) => Promise<Registered>
  declare readonly list: () => Promise<readonly StoredSubscription[]>
  declare readonly members: (subscription: string) => Promise<readonly string[]>
  declare readonly attend: (request: AttendRequest) => Promise<readonly SubscriptionView[]>
  declare readonly leave: (owner: string) => Promise<void>
  declare readonly claim: (request: ClaimRequest) => Promise<ClaimOutcome>
  declare readonly renew: (lease: Lease, leaseMs: number) => Promise<boolean>
  declare readonly release: (lease: Lease, isSuspect?: boolean) => Promise<void>
  declare readonly load: (subscription: string, partition: number) => Promise<PartitionState | undefined>
  declare readonly partitions: (subscription: string) => Promise<readonly PartitionState[]>
  declare readonly commit: (commit: Commit) => Promise<CommitOutcome>
  declare readonly perform: (lease: Lease, work: (tx: Transaction) => Promise<Commit>) => Promise<CommitOutcome>
  declare readonly pause: (subscription: string, pause: Pause, deed: Deed) => Promise<void>
  declare readonly resume: (subscription: string, deed: Deed) => Promise<void>
  declare readonly reset: (
    subscription: string,
    empty: ((handle: unknown) => unknown) | undefined,
    deed: Deed,
  ) => Promise<ResetReport>
  declare readonly rehearse: (work: (tx: Transaction) => Promise<void>) => Promise<readonly RowChange[]>
  declare readonly acquit: (subscription: string, partition: number, instance: string) => Promise<void>
  declare readonly announceStop: (lease: Lease, instance: string, isSuspect: boolean) => Promise<void>
  declare readonly onRelease: (wake: () => void) => () => void
}

class Redrives implements RedriveStore {
  declare readonly select: (selection: Pick<RedriveRequest, 'subscription' | 'act' | 'filter'>) => Promise<Selected>
  declare readonly newest: (subscription: string) => Promise<number>
  declare readonly ask: (request: RedriveRequest) => Promise<AskOutcome>
  declare readonly due: (subscription: string, partition: number, limit: number) => Promise<readonly RedriveTask[]>
  declare readonly advance: (subscription: string) => Promise<void>
  declare readonly cancel: (id: string, deed: Deed) => Promise<boolean>
  declare readonly find: (id: string) => Promise<Redrive | undefined>
  declare readonly list: (query: { subscription?: string; limit: number }) => Promise<readonly Redrive[]>
  declare readonly lanes: (
    id: string,
    state: RedriveLaneState | undefined,
    after: number,
    limit: number,
  ) => Promise<readonly (RedriveLane & { readonly ordinal: number })[]>
  declare readonly purge: (subscription: string, endedBefore: number, most: number) => Promise<number>
}

class Rebuilds implements RebuildStore {
  declare readonly begin: (request: BeginRequest) => Promise<BeginOutcome>
  declare readonly list: (subscription: string) => Promise<readonly Generation[]>
  declare readonly decisions: (
    subscription: string,
    partition: number,
    after: number,
    through: number,
  ) => Promise<readonly RebuildDecision[]>
  declare readonly strays: (
    subscription: string,
    version: number,
    limit: number,
  ) => Promise<{ count: number; positions: readonly number[] }>
  declare readonly halt: (subscription: string, forMs: number) => Promise<void>
  declare readonly switch: (request: SwitchRequest) => Promise<SwitchOutcome>
  declare readonly drop: (subscription: string, version: number, deed: Deed) => Promise<DropOutcome>
}

/** The chain of the audit is the same in every store: the rule comes from the door too. */
class Audit implements AuditStore {
  readonly #entries: AuditEntry[] = []

  async record(deed: Deed): Promise<void> {
    this.#entries.push(chain(deed, this.#entries.at(-1) ?? noEntry))
  }

  async list(after: number, limit: number): Promise<readonly AuditEntry[]> {
    return this.#entries.slice(after, after + limit)
  }

  async has(act: string): Promise<boolean> {
    return this.#entries.some((entry) => entry.act === act)
  }
}

class Breakers implements BreakerStore {
  declare readonly load: BreakerStore['load']
  declare readonly list: () => Promise<readonly BreakerRecord[]>
  declare readonly save: (breaker: Omit<BreakerRecord, 'revision'>, revision: number, deed?: Deed) => Promise<boolean>
}

export class ThirdStore implements Store {
  readonly dialect = 'third'
  declare readonly log: LogStore
  declare readonly letters: LetterStore
  declare readonly rows: RowStore
  declare readonly inbox: InboxStore
  readonly subscriptions = new Subscriptions()
  readonly redrives = new Redrives()
  readonly rebuilds = new Rebuilds()
  readonly audit = new Audit()
  readonly breakers = new Breakers()
  declare readonly snapshot: <T>(read: (moment: StoreMoment) => Promise<T>) => Promise<T>
  declare readonly restore: (parts: AsyncIterable<ArchivePart>) => Promise<void>
  declare readonly close: () => Promise<void>
  declare readonly [Symbol.asyncDispose]: () => Promise<void>
}

/** What a store is asked for most. */
export interface Parts {
  append(key: string, events: readonly NewEvent[], expected: ExpectedVersion, more?: AppendWith): Promise<AppendOutcome>
  letters(moment: StoreMoment): Promise<readonly DeadLetter[]>
  lanes(moment: StoreMoment): Promise<readonly HeldLane[]>
}

import { type Budget, createBudget } from '../../failure/budget.ts'
import type { Handler } from '../../handler/handler.ts'
import type { PartitionState } from '../../subscription/subscription-store.ts'
import { heldUpBy } from '../held/blocking-lane.ts'
import type { Partition } from '../ownership/partition.ts'
import { Redriving } from '../held/redrive-tasks.ts'
import type { NextState } from '../ownership/subscription-state.ts'
import { Suspicion } from '../crash/suspicion.ts'
import type { Ownership } from '../ownership/ownership.ts'
import type { WorkerParts } from '../ownership/worker-parts.ts'
import type { Attempt } from './attempt.ts'
import { BreakerWaits } from './breaker-waits.ts'
import { Dedup } from './dedup.ts'
import { DueLanes } from '../held/due-lanes.ts'
import type { Entry } from './entry.ts'
import { Flow } from './flow.ts'
import { Ledger } from '../outcome/ledger.ts'
import { BeginWindow } from './begin-window.ts'
import { Suspects } from './suspects.ts'
import { HandlerReporter } from './handler-reporter.ts'
import { type Track, Tracks, wholePartition } from './tracks.ts'
import { Window } from './window.ts'

export interface HandlerLoopParts extends WorkerParts {
  readonly ownership: Ownership
  readonly stopping: AbortSignal
  readonly state: PartitionState
  readonly isInherited: boolean
  /** The highest position the source had when the partition was claimed. */
  readonly end: number
  readonly enter: (next: NextState) => void
  readonly wake: () => void
}

/** The shared state of a handler's loop: all work in progress in a partition. */
export interface HandlerState {
  readonly parts: HandlerLoopParts
  readonly handler: Handler
  readonly partition: Partition
  readonly window: Window
  readonly tracks: Tracks<Entry>
  readonly ledger: Ledger<Track<Entry>>
  readonly flow: Flow
  readonly due: DueLanes
  readonly redriving: Redriving
  readonly waits: BreakerWaits
  readonly dedup: Dedup | undefined
  readonly suspicion: Suspicion
  readonly suspects: Suspects
  readonly budget: Budget | undefined
  readonly reporter: HandlerReporter
  readonly running: Map<Entry, Attempt>
  /** Lanes whose letters are being processed. */
  readonly draining: Set<string>
  readonly beginWindow: BeginWindow
  /** The loop stops or lost the partition: nothing starts. */
  isOver: boolean
}

export function createHandlerState(parts: HandlerLoopParts, handler: Handler, partition: Partition): HandlerState {
  const { runtime, state, settings, store, breakers } = parts
  const { failure, dedupe, order } = handler
  const { position } = state.checkpoint
  const lanes = () => partition.held.values()
  const heads = new Set([...lanes()].flatMap(({ status, headPosition }) => (status === 'parked' ? [] : headPosition)))
  const storeClock = { now: partition.now, mono: () => runtime.clock.mono() }
  const tracks = new Tracks<Entry>()
  const ledger = new Ledger<Track<Entry>>(partition.held, partition.now)
  ledger.leaveRedrives()
  if (heldUpBy(parts.subscription, partition.held)) tracks.bar(wholePartition)
  return {
    parts,
    handler,
    partition,
    window: new Window(position, state.marks),
    tracks,
    ledger,
    flow: new Flow(failure.outage, order === 'partition' ? 1 : handler.concurrency, runtime),
    due: new DueLanes(lanes(), storeClock),
    redriving: new Redriving(parts),
    waits: new BreakerWaits(handler, breakers, lanes()),
    dedup: dedupe && new Dedup(handler.name, dedupe, store.inbox, storeClock),
    suspicion: new Suspicion(state.trials, parts.isInherited, settings.instance, failure.maxDeaths, heads),
    suspects: new Suspects(Math.min(state.tried ?? position, parts.end), partition.held, partition.now()),
    budget: failure.budget && createBudget(failure.budget),
    reporter: new HandlerReporter(parts),
    running: new Map(),
    draining: new Set(),
    beginWindow: new BeginWindow(position),
    isOver: false,
  }
}

import type { Breakers } from '../../breaker/breakers.ts'
import type { Runtime, Watchdog } from '../../runtime/ports.ts'
import type { Throughput } from '../../runtime/throughput.ts'
import type { Share } from '../../source/share.ts'
import type { Source } from '../../source/source.ts'
import type { Store } from '../../store.ts'
import type { Subscription } from '../../subscription/subscription.ts'
import type { ExclusiveRun } from '../crash/exclusive-run.ts'
import type { EngineEmitter, Logger } from '../events.ts'
import type { OutcomeReporter } from '../outcome/outcome-reporter.ts'

export interface WorkerSettings {
  readonly owner: string
  /** The unique id of this process. A successor may have the same `owner` name. */
  readonly instance: string
  readonly leaseMs: number
  readonly pollMs: number
  readonly beatMs: number
  readonly pageEvents: number
  readonly pageBytes: number
  readonly cacheBytes: number
  /** Processes held lanes only and reads nothing from the source. */
  readonly only: 'letters' | undefined
  /** Also runs on a store with imported letters. */
  readonly allowEffects: boolean
}

export interface WorkerParts {
  readonly store: Store
  readonly subscription: Subscription
  readonly source: Source
  readonly share: Share
  readonly runtime: Runtime
  readonly settings: WorkerSettings
  readonly emitter: EngineEmitter
  readonly logger: Logger
  readonly watchdog: Watchdog | undefined
  readonly outcomeReporter: OutcomeReporter
  readonly rate: Throughput
  readonly breakers: Breakers
  readonly exclusiveRun: ExclusiveRun
  /** The number of events per page. It outlives the worker: after a page that took too long and was fenced, the next worker keeps the smaller size. */
  readonly fit: { events: number }
  /** Called after every commit and every change of state. */
  readonly changed: () => void
  readonly fenced: () => void
}

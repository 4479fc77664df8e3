import { createEngine } from '../../engine/process/engine.ts'
import type { Logger } from '../../engine/events.ts'
import { HoldfastError } from '../../errors.ts'
import { type Duration, toMs } from '../../runtime/duration.ts'
import { checkOptions } from '../../runtime/options.ts'
import type { Store } from '../../store.ts'
import {
  type Generation,
  generationOf,
  generationTable,
  rebuildableOf,
  type RebuildableSubscription,
} from '../../rebuild/generation.ts'
import type { OperatorParts } from '../parts.ts'
import { Pace, paced } from '../../rebuild/pace.ts'
import { ProgressMeter, type RebuildProgress } from '../../rebuild/progress.ts'

export interface RebuildOptions {
  /** The reason, for the audit. */
  readonly reason: string
  /** Stops the rebuild. Its progress is kept, and the next call continues from there. */
  readonly signal?: AbortSignal
  /** Maximum events per second. Default: as many as `load` allows. */
  readonly rate?: number
  /** The fraction of time in which the rebuild works: above 0, up to 1. Default: `0.5`. */
  readonly load?: number
  /** Keep following the log after its end is reached, until the switch. Default: false. */
  readonly follow?: boolean
  /** Called about once a second. */
  readonly onProgress?: (progress: RebuildProgress) => void
  /** The name of this process in leases and in status. Default: host and process id, as for an engine. */
  readonly name?: string
  /** How long a process without a heartbeat keeps its partitions. Default: `10s`. */
  readonly lease?: Duration
  /** The maximum size of one read. Default: 250 events and 1 MiB. */
  readonly page?: { readonly events?: number; readonly bytes?: number }
  readonly logger?: Logger
}

/**
 *     level     the rebuild has reached the end of the log
 *     switched  the version is live now
 *     dropped   an operator dropped the version
 *     stopped   the signal stopped the rebuild
 */
export type RebuildEnd = 'level' | 'switched' | 'dropped' | 'stopped'

export interface Rebuilt {
  readonly end: RebuildEnd
  /** The last known progress. */
  readonly progress: RebuildProgress | undefined
}

type BuildOptions = Omit<RebuildOptions, 'reason'>

const optionNames = ['signal', 'rate', 'load', 'follow', 'onProgress', 'reason', 'name', 'lease', 'page', 'logger']

const lookMs = 250
const tellMs = 1_000

/**
 * Builds this program's version of a projection in a separate table while the live version continues. Only this subscription runs, so no
 * handler is called. A rebuild is an ordinary subscription: it can be killed and started again, and several processes can work on it. To end
 * a rebuild that runs in another process, drop its version.
 */
export async function rebuild(parts: OperatorParts, name: string, options: RebuildOptions): Promise<Rebuilt> {
  checkOptions(options, 'rebuild', optionNames)
  const { reason, ...building } = options
  const why = parts.reasonOf(reason)
  const subscription = rebuildableOf(parts.subscriptionOf(name))
  paceOf(building)
  await begin(parts, subscription, why)
  return build(parts, subscription, building)
}

/** Works on a recorded rebuild until its end, see `RebuildEnd`. */
export async function build(
  { store, runtime }: Pick<OperatorParts, 'store' | 'runtime'>,
  subscription: RebuildableSubscription,
  options: BuildOptions,
): Promise<Rebuilt> {
  const { signal, follow = false, onProgress, page = {} } = options
  const { rate, load, leaseMs } = paceOf(options)
  const { name: live, consumer } = subscription
  const { version } = consumer
  const ending = new AbortController()
  const end = () => ending.abort()
  signal?.addEventListener('abort', end)
  if (signal?.aborted) end()
  const pace = new Pace({ runtime, live, store, rate, load, longestRestMs: leaseMs / 4, signal: ending.signal })
  const engine = createEngine({
    ...runtime,
    store: paced(store, pace),
    subscriptions: [generationOf(subscription)],
    // Only rows are made, beside those that are there.
    allowEffects: true,
    lease: leaseMs,
    page: { events: page.events ?? 250, bytes: page.bytes ?? 1_048_576 },
    ...(options.name !== undefined && { name: options.name }),
    ...(options.logger && { logger: options.logger }),
  })
  const failed = Promise.withResolvers<never>()
  // The promise can reject while nothing awaits it.
  failed.promise.catch(() => undefined)
  engine.on('subscription.state', ({ to }) => {
    // Blocked by an event: waiting does not help.
    if (to.state === 'failed' || (to.state === 'blocked' && to.by === 'order')) failed.reject(to.error)
  })
  const meter = new ProgressMeter()
  let progress: RebuildProgress | undefined
  let toldAt = Number.NEGATIVE_INFINITY
  try {
    await engine.start()
    for (;;) {
      const found = await look(store, live, version)
      if (found.state !== 'building') return { end: found.state, progress }
      const wasLevel = progress?.isLevel ?? false
      progress = meter.look(found.generation, found.head, runtime.clock.mono())
      const isNews = progress.isLevel !== wasLevel || runtime.clock.mono() - toldAt >= tellMs
      if (isNews) {
        toldAt = runtime.clock.mono()
        onProgress?.(progress)
      }
      if (progress.isLevel && !follow) return { end: 'level', progress }
      if (ending.signal.aborted) return { end: 'stopped', progress }
      await Promise.race([runtime.timers.sleep(lookMs, ending.signal), failed.promise])
    }
  } catch (error) {
    // A version that was switched or dropped also fails here; return that end instead of the error.
    const found = await look(store, live, version).catch(() => undefined)
    if (found && found.state !== 'building') return { end: found.state, progress }
    // The version exists now but did not at the time of the error: it was live in between.
    if (found && error instanceof HoldfastError && error.code === 'SUBSCRIPTION_UNKNOWN')
      return { end: 'switched', progress }
    throw error
  } finally {
    signal?.removeEventListener('abort', end)
    ending.abort()
    await engine.stop()
  }
}

async function begin(parts: OperatorParts, { name, consumer }: RebuildableSubscription, reason: string): Promise<void> {
  const { kind, version } = consumer
  const table = generationTable(consumer.table, version)
  const deed = parts.deed({ act: 'projection.rebuild', target: name, reason, details: { version } })
  const { outcome } = await parts.store.rebuilds.begin({ subscription: name, version, kind, table, deed })
  if (outcome !== 'live') return
  throw new HoldfastError('REBUILD_LIVE', `Version ${version} of ${name} is already live.`, {
    hint: 'To build it again, raise its version.',
  })
}

type Found =
  | { readonly state: 'building'; readonly generation: Generation; readonly head: number }
  | { readonly state: 'switched' | 'dropped' }

async function look(store: Store, subscription: string, version: number): Promise<Found> {
  const head = await store.log.head()
  const generations = await store.rebuilds.list(subscription)
  const generation = generations.find((one) => one.version === version)
  if (!generation) return { state: 'dropped' }
  return generation.isLive ? { state: 'switched' } : { state: 'building', generation, head }
}

function paceOf({ rate, load = 0.5, lease = '10s' }: BuildOptions) {
  if (rate !== undefined && !(Number.isFinite(rate) && rate > 0))
    throw new HoldfastError('OPTION_INVALID', `rate is ${String(rate)}.`, { hint: 'Give events per second, above 0.' })
  if (!(typeof load === 'number' && load > 0 && load <= 1))
    throw new HoldfastError('OPTION_INVALID', `load is ${String(load)}.`, { hint: 'Give a number above 0, up to 1.' })
  return { rate, load, leaseMs: toMs(lease, 'lease') }
}

import { createEngine } from '../engine/engine.ts'
import type { Logger } from '../engine/events.ts'
import { HoldfastError } from '../errors.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions, checkStore } from '../runtime/options.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { Store } from '../store.ts'
import { type Answerable, deedOf } from './deed.ts'
import { type Generation, generationOf, generationTable, type Rebuildable, rebuildableOf } from './generation.ts'
import { Pace, paced } from './pace.ts'
import { ProgressMeter, type RebuildProgress } from './progress.ts'

export interface RebuildOptions extends Partial<Runtime>, Answerable {
  readonly store: Store
  /** Ends it; what was done stays, and the next one goes on from there. */
  readonly signal?: AbortSignal
  /** Events per second at the most; as many as the load allows unless you say. */
  readonly rate?: number
  /** Which part of its time it works: above 0, up to 1. 0.5 unless you say otherwise. */
  readonly load?: number
  /** Whether to go on when it has come up with the log, until the switch. False unless you say otherwise. */
  readonly follow?: boolean
  /** About once a second. */
  readonly onProgress?: (progress: RebuildProgress) => void
  /** Who this process is in leases and in status; made up unless you say. */
  readonly name?: string
  /** How long a process that went silent keeps its partitions. '10s' unless you say otherwise. */
  readonly lease?: Duration
  /** How much is taken at a time. 250 events and 1 MiB unless you say otherwise. */
  readonly page?: { readonly events?: number; readonly bytes?: number }
  readonly logger?: Logger
}

/**
 *     level     it has come up with the log
 *     switched  it is the live one now
 *     dropped   somebody dropped it
 *     stopped   the signal ended it
 */
export type RebuildEnd = 'level' | 'switched' | 'dropped' | 'stopped'

export interface Rebuilt {
  readonly end: RebuildEnd
  /** As of the last look. */
  readonly progress: RebuildProgress | undefined
}

const optionNames = [
  'store',
  'signal',
  'rate',
  'load',
  'follow',
  'onProgress',
  'by',
  'reason',
  'name',
  'lease',
  'page',
  'logger',
  'clock',
  'timers',
  'random',
]

const lookMs = 250
const tellMs = 1_000

/**
 * Builds the version of a projection that this code is, into a table of its own, beside the live one. Nothing else runs, so no handler
 * fires. It may be killed at any time and begun again, and several processes may help each other: it is a subscription like any other.
 * To end a running one elsewhere, drop its version.
 */
export async function rebuild(projection: Rebuildable, options: RebuildOptions): Promise<Rebuilt> {
  checkOptions(options, 'rebuild', optionNames)
  checkStore(options.store, 'rebuild')
  const { store, signal, follow = false, onProgress, page = {} } = options
  const runtime = runtimeOf(options)
  const { rate, load, leaseMs } = paceOf(options)
  const subscription = rebuildableOf(projection)
  const { name: live, consumer } = subscription
  const { version } = consumer
  await begin(subscription, store, deedOf(options, 'projection.rebuild', live, runtime.clock.now(), { version }))
  const ending = new AbortController()
  const end = () => ending.abort()
  signal?.addEventListener('abort', end)
  if (signal?.aborted) end()
  const pace = new Pace({ runtime, live, store, rate, load, longestRestMs: leaseMs / 4, signal: ending.signal })
  const engine = createEngine({
    ...runtime,
    store: paced(store, pace),
    subscriptions: [generationOf(subscription)],
    lease: leaseMs,
    page: { events: page.events ?? 250, bytes: page.bytes ?? 1_048_576 },
    ...(options.name !== undefined && { name: options.name }),
    ...(options.logger && { logger: options.logger }),
  })
  const failed = Promise.withResolvers<never>()
  // It may come while nothing awaits it.
  failed.promise.catch(() => undefined)
  engine.on('subscription.state', ({ to }) => {
    // Blocked by an event: nothing that this call could wait for brings it further.
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
    // One that is gone fails as well; what became of it says more.
    const found = await look(store, live, version).catch(() => undefined)
    if (found && found.state !== 'building') return { end: found.state, progress }
    // It is there again, and its table was not when it was asked for: it was the live one in between.
    if (found && error instanceof HoldfastError && error.code === 'SUBSCRIPTION_UNKNOWN')
      return { end: 'switched', progress }
    throw error
  } finally {
    signal?.removeEventListener('abort', end)
    ending.abort()
    await engine.stop()
  }
}

async function begin(
  { name, consumer }: ReturnType<typeof rebuildableOf>,
  store: Store,
  deed: ReturnType<typeof deedOf>,
): Promise<void> {
  const { kind, version } = consumer
  const table = generationTable(consumer.table, version)
  const { outcome } = await store.rebuilds.begin({ subscription: name, version, kind, table, deed })
  if (outcome !== 'live') return
  throw new HoldfastError('REBUILD_LIVE', `${name} is live at version ${version} already.`, {
    hint: 'To build it anew, raise its version.',
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

function paceOf({ rate, load = 0.5, lease = '10s' }: RebuildOptions) {
  if (rate !== undefined && !(Number.isFinite(rate) && rate > 0))
    throw new HoldfastError('OPTION_INVALID', `rate is ${String(rate)}.`, { hint: 'Give events per second, above 0.' })
  if (!(typeof load === 'number' && load > 0 && load <= 1))
    throw new HoldfastError('OPTION_INVALID', `load is ${String(load)}.`, { hint: 'Give a number above 0, up to 1.' })
  return { rate, load, leaseMs: toMs(lease, 'lease') }
}

export function runtimeOf({ clock, timers, random }: Partial<Runtime>): Runtime {
  return { ...systemRuntime, ...(clock && { clock }), ...(timers && { timers }), ...(random && { random }) }
}

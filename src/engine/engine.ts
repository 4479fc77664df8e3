import type { BreakerState } from '../breaker/breaker.ts'
import { createBreakers } from '../breaker/breakers.ts'
import type { DeadLetter } from '../dead-letter/letter.ts'
import type { LetterQuery } from '../dead-letter/letter-store.ts'
import { HoldfastError, StoreError } from '../errors.ts'
import { createIds } from '../event/identity.ts'
import type { Projection } from '../projection/projection.ts'
import { type Reader, read } from '../projection/read.ts'
import { refuseOtherVersion } from '../rebuild/live.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions, checkStore } from '../runtime/options.ts'
import type { Runtime, Watchdog } from '../runtime/ports.ts'
import { systemChannel, systemRuntime } from '../runtime/system.ts'
import type { Store } from '../store.ts'
import { emptierOf } from '../subscription/begin-anew.ts'
import { type Consumer, defineSubscription, type Subscription } from '../subscription/subscription.ts'
import { Attendance } from './attendance.ts'
import { EngineEmitter, type EngineEventName, type Listener, type Logger, warningLogger } from './events.ts'
import { Lookout } from './lookout.ts'
import { Runner } from './runner.ts'
import { Solitude } from './solitude.ts'
import { type EngineStatus, readStatus } from './status.ts'
import { type Retention, Sweeper } from './sweeper.ts'
import { Timetable } from './timetable.ts'
import { type Verification, type VerifyOptions, verifySubscription } from './verify.ts'
import type { WorkerSettings } from './worker.ts'

export interface EngineOptions extends Partial<Runtime> {
  readonly store: Store
  /** Projections and handlers, or subscriptions made with `defineSubscription`. */
  readonly subscriptions: readonly (Consumer | Subscription)[]
  /** Who this process is in leases and in status; made up unless you say. */
  readonly name?: string
  /** How long a process that went silent keeps its partitions. '10s' unless you say otherwise. */
  readonly lease?: Duration
  /** How often to look for events that nobody announced. '100ms' unless you say otherwise. */
  readonly poll?: Duration
  /** How often to look what other processes do, and what people ask for. '250ms' unless you say otherwise, and a third of the lease at the most. */
  readonly beat?: Duration
  /** How much is taken at a time. 1,000 events and 4 MiB unless you say otherwise. */
  readonly page?: { readonly events?: number; readonly bytes?: number }
  /** How much memory the rows kept between pages may take. 32 MiB unless you say otherwise; 0 keeps none. */
  readonly cacheBytes?: number
  /**
   * How long letters are kept that the engine has resolved. '30d' unless you say otherwise; what a person has resolved, discarded or edited
   * is kept in any case.
   */
  readonly retention?: Duration | 'forever'
  readonly logger?: Logger
  /** Is told what runs, for the case that it never ends: `startWatchdog()` of `holdfast/watchdog`. It is yours to stop. */
  readonly watchdog?: Watchdog
  /**
   * `'letters'`: claims partitions, works off what is held and what redrives want, and reads nothing from the sources. For a command that
   * does this while no engine runs.
   */
  readonly only?: 'letters'
}

export interface Engine extends AsyncDisposable {
  /**
   * Makes in the store what the subscriptions need, and nothing else: for a step of a deployment that may change the schema,
   * where the engines themselves may not.
   */
  prepare(): Promise<void>
  /** Resolves when the subscriptions are set up and running. Rejects when a definition doesn't fit what is in the store. */
  start(): Promise<void>
  /** Finishes the pages at hand and hands the leases back; after the timeout ('10s') it gives up waiting. */
  stop(options?: { readonly timeout?: Duration }): Promise<{ readonly forced: boolean }>
  /**
   * Resolves when everything that is in the sources now has its outcome, and everything that operators have asked for up to now is done.
   * Waits as long as that takes. Rejects where only an operator can continue: when a subscription is paused, failed, or blocked by a parked
   * event (`SUBSCRIPTION_PAUSED`, `SUBSCRIPTION_FAILED`, `SUBSCRIPTION_BLOCKED`). That an event blocks a partition is known of those that this
   * process owns; for a blocked partition of another process it waits.
   */
  drain(options?: { readonly signal?: AbortSignal }): Promise<void>
  /** Lasting, and for all processes, until somebody resumes it. */
  pause(subscription: string, reason: string): Promise<void>
  resume(subscription: string): Promise<void>
  /**
   * Empties a projection and begins it anew: its rows (or what the `reset` of its SQL empties), its checkpoints, its held lanes and
   * their letters go in one transaction, and everything is applied again. Readers see it half-built meanwhile, for as long as it takes
   * to apply `events` again; `rebuild` does the same beside the live one. A rebuild that is under way is dropped.
   */
  reset(subscription: string): Promise<{ readonly events: number }>
  status(): Promise<EngineStatus>
  /** Recomputes every outcome and every row from the log and compares. */
  verify(subscription: string, options?: VerifyOptions): Promise<Verification>
  letters(query: LetterQuery): Promise<readonly DeadLetter[]>
  read<Row, Columns>(projection: Projection<Row, Columns>): Reader<Row, Columns>
  /** Returns what ends the listening. */
  on<Name extends EngineEventName>(name: Name, listener: Listener<Name>): () => void
}

const optionNames = [
  'store',
  'subscriptions',
  'name',
  'lease',
  'poll',
  'beat',
  'page',
  'cacheBytes',
  'retention',
  'logger',
  'watchdog',
  'only',
  'clock',
  'timers',
  'random',
]

/**
 *     new ──start──► running ──stop──► stopped
 *
 * An engine runs once: to run again, make a new one.
 */
export function createEngine(options: EngineOptions): Engine {
  checkOptions(options, 'createEngine', optionNames)
  checkStore(options.store, 'createEngine')
  if (!Array.isArray(options.subscriptions))
    throw new HoldfastError('OPTION_INVALID', 'createEngine needs a list of subscriptions.')
  const { store, logger = warningLogger, watchdog } = options
  const runtime: Runtime = { ...systemRuntime, ...definedParts(options) }
  const settings = readSettings(options, runtime)
  const emitter = new EngineEmitter(logger, systemChannel)
  const breakers = createBreakers({
    store,
    runtime,
    processId: settings.instance,
    onChange: (name, _from, to) => tellBreaker(emitter, name, to),
    onStoreError: (breaker, error) =>
      logger.warn({ breaker, error }, 'a breaker works by itself: the store can not be used'),
  })
  const solitude = new Solitude(runtime.clock)
  const runners = new Map<string, Runner>()
  for (const declared of options.subscriptions) {
    const subscription = declared.kind === 'subscription' ? declared : defineSubscription(declared)
    if (runners.has(subscription.name))
      throw new HoldfastError('OPTION_INVALID', `Two subscriptions are called ${subscription.name}.`)
    const look = () => attendance.look()
    runners.set(
      subscription.name,
      new Runner({ store, subscription, runtime, settings, emitter, logger, breakers, solitude, watchdog, look }),
    )
  }
  const all = [...runners.values()]
  const attendance = new Attendance({ store, runners: all, runtime, settings, emitter, logger })
  const lookout = new Lookout(store.log, all, runtime.timers, settings.pollMs)
  const timetable = new Timetable(store, all, runtime, logger)
  const retention = retentionOf(options, all)
  const sweeper = retention || all.some(remembers) ? new Sweeper(store, retention, runtime, logger) : undefined
  let running: Promise<unknown> | undefined
  let phase: 'new' | 'starting' | 'running' | 'stopped' = 'new'

  return {
    prepare: async () => {
      for (const runner of all) await runner.register()
    },
    start,
    stop,
    drain,
    pause: async (name, reason) => {
      const runner = runnerOf(name)
      if (typeof reason !== 'string' || reason.trim() === '') {
        throw new HoldfastError('OPTION_INVALID', 'A pause needs a reason.', {
          hint: 'Say why, for whoever finds it paused.',
        })
      }
      const pause = { reason, at: runtime.clock.now() }
      await store.subscriptions.pause(name, pause)
      runner.setPause(pause)
    },
    resume: async (name) => {
      const runner = runnerOf(name)
      await store.subscriptions.resume(name)
      runner.setPause(undefined)
    },
    reset: async (name) => {
      const { subscription } = runnerOf(name)
      const empty = emptierOf(subscription)
      await refuseOtherVersion(store, subscription)
      await store.subscriptions.reset(name, empty)
      attendance.look()
      return { events: await eventsBehind(name) }
    },
    status: () => readStatus(store, all, runtime.clock),
    verify: async (name, verifying) => {
      const { subscription } = runnerOf(name)
      await refuseOtherVersion(store, subscription)
      return verifySubscription(store, subscription, runtime, verifying)
    },
    letters: async (query) => {
      const { subscription, after = 0, limit = 100 } = query
      runnerOf(subscription)
      if (!Number.isSafeInteger(after)) throw new HoldfastError('OPTION_INVALID', `after is ${after}; give a position.`)
      return store.letters.list({ ...query, after, limit: positive(limit, 'limit') })
    },
    read: (projection) => read(store, projection),
    on: (name, listener) => emitter.on(name, listener),
    [Symbol.asyncDispose]: async () => {
      await stop()
    },
  }

  async function start(): Promise<void> {
    if (phase !== 'new') {
      const message = phase === 'stopped' ? 'This engine was stopped.' : 'This engine is running already.'
      throw new HoldfastError('ENGINE_STATE', message, { hint: 'An engine runs once: make a new one.' })
    }
    if (namesOn(store).has(settings.owner)) {
      throw new HoldfastError('OPTION_INVALID', `An engine called ${settings.owner} runs on this store already.`, {
        hint: 'Give each its own name, or none.',
      })
    }
    phase = 'starting'
    const unregistered: Runner[] = []
    try {
      for (const runner of all) if (!(await register(runner))) unregistered.push(runner)
    } catch (error) {
      if (phase === 'starting') phase = 'new'
      throw error
    }
    phase = phase === 'starting' ? 'running' : phase
    if (phase === 'running') namesOn(store).add(settings.owner)
    if (phase === 'running') running = run(unregistered)
  }

  /** Resolves when all of it was stopped. */
  function run(unregistered: readonly Runner[]): Promise<unknown> {
    const isReading = settings.only !== 'letters'
    const beside = isReading ? [lookout.run(), timetable.run(), sweeper?.run()] : []
    return Promise.all([attendance.run(unregistered), ...beside])
  }

  async function eventsBehind(name: string): Promise<number> {
    const states = await store.subscriptions.partitions(name)
    const lags = await Promise.all(
      states.map(({ partition, checkpoint }) => store.log.lag(checkpoint.start, { partition, of: states.length })),
    )
    return lags.reduce((sum, { events }) => sum + events, 0)
  }

  /** False when the store or the source could not be asked; it will be asked again. */
  async function register(runner: Runner): Promise<boolean> {
    try {
      await runner.register()
      return true
    } catch (error) {
      if (!(error instanceof HoldfastError)) return false
      if (error instanceof StoreError && error.code !== 'STORE_REFUSED') return false
      throw error
    }
  }

  async function stop({ timeout = '10s' }: { readonly timeout?: Duration } = {}): Promise<{ forced: boolean }> {
    phase = 'stopped'
    attendance.stop()
    lookout.stop()
    timetable.stop()
    sweeper?.stop()
    namesOn(store).delete(settings.owner)
    const ending = all.map((runner) => runner.stop())
    if (!running) return { forced: false }
    const waited = new AbortController()
    let finished = false
    const wait = async (work: Promise<void>) => {
      await work
      finished = true
      waited.abort()
    }
    const ended = wait(end(running, ending))
    await runtime.timers.sleep(toMs(timeout, 'timeout'), waited.signal)
    if (finished) await ended
    else for (const runner of all) runner.force()
    return { forced: !finished }
  }

  async function end(attending: Promise<unknown>, ending: readonly Promise<void>[]): Promise<void> {
    await Promise.all([attending, ...ending])
    await breakers.close()
    await attendance.leave()
  }

  async function drain({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    if (signal !== undefined && !(signal instanceof AbortSignal))
      throw new HoldfastError('OPTION_INVALID', 'signal is no AbortSignal.')
    if (phase !== 'running')
      throw new HoldfastError('ENGINE_STATE', 'Only a running engine can be drained.', { hint: 'Call start() first.' })
    const isReading = settings.only !== 'letters'
    const heard = attendance.heard()
    await Promise.all(all.map((runner) => reachHead(runner, heard, isReading, signal)))
  }

  function runnerOf(name: string): Runner {
    const runner = runners.get(name)
    if (runner) return runner
    throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `This engine has no subscription ${JSON.stringify(name)}.`, {
      hint: `It has ${[...runners.keys()].join(', ') || 'none'}.`,
    })
  }
}

const names = new WeakMap<object, Set<string>>()

/** Who runs on a store. Two of one name would take their partitions from each other for ever. */
function namesOn({ subscriptions }: Store): Set<string> {
  const known = names.get(subscriptions) ?? new Set()
  names.set(subscriptions, known)
  return known
}

/** `heard`: from then on the runner knows what operators did before the call, such as a reset or a resume. */
async function reachHead(
  runner: Runner,
  heard: Promise<void>,
  isReading: boolean,
  signal: AbortSignal | undefined,
): Promise<void> {
  const target = isReading ? await runner.source.head() : 0
  await new Promise<void>((resolve, reject) => {
    let hasHeard = false
    const look = () => {
      const end = (settle: () => void) => {
        unwatch()
        signal?.removeEventListener('abort', look)
        settle()
      }
      const { state, pause } = runner
      const stuck = hasHeard ? runner.stuckBefore(target) : undefined
      if (hasHeard && runner.reached(target)) end(resolve)
      else if (signal?.aborted) end(() => reject(signal.reason as Error))
      else if (state.state === 'failed')
        end(() => reject(cannotDrain(runner, 'SUBSCRIPTION_FAILED', 'it failed', state.error)))
      else if (hasHeard && pause)
        end(() => reject(cannotDrain(runner, 'SUBSCRIPTION_PAUSED', `it is paused: ${pause.reason}`)))
      // It says by itself which event that is, and what to do.
      else if (stuck) end(() => reject(stuck))
      else if (state.state === 'stopped') end(() => reject(cannotDrain(runner, 'ENGINE_STATE', 'it was stopped')))
    }
    const unwatch = runner.watch(look)
    signal?.addEventListener('abort', look)
    const settle = async () => {
      await heard
      hasHeard = true
      look()
    }
    void settle()
    runner.wake()
    look()
  })
}

function cannotDrain(
  runner: Runner,
  code: 'SUBSCRIPTION_FAILED' | 'SUBSCRIPTION_PAUSED' | 'ENGINE_STATE',
  why: string,
  cause?: unknown,
): HoldfastError {
  return new HoldfastError(
    code,
    `${runner.subscription.name} can't be drained: ${why}.`,
    cause === undefined ? {} : { cause },
  )
}

function retentionOf({ retention = '30d' }: EngineOptions, all: readonly Runner[]): Retention | undefined {
  if (retention === 'forever') return undefined
  const keptMs = positive(toMs(retention, 'retention'), 'retention')
  return { keptMs, subscriptions: all.map(({ subscription }) => subscription.name) }
}

/** Whether a subscription leaves marks in the store whose time can be over. */
function remembers({ subscription: { consumer } }: Runner): boolean {
  return consumer.kind === 'handler' && consumer.dedupe?.store === 'store' && Number.isFinite(consumer.dedupe.windowMs)
}

function tellBreaker(emitter: EngineEmitter, breaker: string, to: BreakerState): void {
  switch (to.state) {
    case 'open':
      return emitter.emit('breaker.opened', { breaker, retryAt: to.reopensAt })
    case 'half-open':
      return emitter.emit('breaker.half_open', { breaker })
    case 'closed':
      return emitter.emit('breaker.closed', { breaker })
    case 'isolated':
      return emitter.emit('breaker.opened', { breaker, retryAt: Number.POSITIVE_INFINITY })
    default:
      to satisfies never
  }
}

function definedParts({ clock, timers, random }: Partial<Runtime>): Partial<Runtime> {
  return { ...(clock && { clock }), ...(timers && { timers }), ...(random && { random }) }
}

function readSettings(options: EngineOptions, runtime: Runtime): WorkerSettings {
  const { name, lease = '10s', poll = '100ms', beat = '250ms', page = {}, cacheBytes = 33_554_432, only } = options
  checkOptions(page, 'page', ['events', 'bytes'])
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw new HoldfastError('OPTION_INVALID', 'name is no text.')
  if (only !== undefined && only !== 'letters')
    throw new HoldfastError('OPTION_INVALID', `only is ${JSON.stringify(only)}.`, { hint: "It can be 'letters'." })
  const instance = createIds(runtime.clock, runtime.random)()
  return {
    owner: name ?? `engine-${instance}`,
    instance,
    leaseMs: positive(toMs(lease, 'lease'), 'lease'),
    pollMs: positive(toMs(poll, 'poll'), 'poll'),
    beatMs: positive(toMs(beat, 'beat'), 'beat'),
    pageEvents: positive(page.events ?? 1_000, 'page.events'),
    pageBytes: positive(page.bytes ?? 4_194_304, 'page.bytes'),
    cacheBytes: cacheBytes === 0 ? 0 : positive(cacheBytes, 'cacheBytes'),
    only,
  }
}

function positive(value: number, what: string): number {
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw new HoldfastError('OPTION_INVALID', `${what} is ${value}; it must be a whole number from 1.`)
}

import type { BreakerState } from '../../breaker/breaker.ts'
import { createBreakers } from '../../breaker/breakers.ts'
import type { DeadLetter } from '../../dead-letter/letter.ts'
import type { LetterQuery } from '../../dead-letter/letter-store.ts'
import { letterQuery } from '../../dead-letter/query.ts'
import { HoldfastError, StoreError } from '../../errors.ts'
import { createIds } from '../../event/identity.ts'
import type { Projection } from '../../projection/projection.ts'
import { type Reader, read } from '../../projection/read.ts'
import { checkDialect } from '../../projection/sql-projection.ts'
import { refuseOtherVersion } from '../../rebuild/live.ts'
import { type Duration, toMs } from '../../runtime/duration.ts'
import { checkOptions, checkStore } from '../../runtime/options.ts'
import type { Runtime, Watchdog } from '../../runtime/ports.ts'
import { engineName, systemChannel, systemRuntime } from '../../runtime/system.ts'
import type { Store } from '../../store.ts'
import { type Announcement, onAnnouncement } from '../../subscription/announce.ts'
import { type Consumer, defineSubscription, type Subscription } from '../../subscription/subscription.ts'
import { Heartbeat } from './heartbeat.ts'
import { EngineEmitter, type EngineEventName, type Listener, type Logger, warningLogger } from '../events.ts'
import { refuseImported } from './imported.ts'
import { LogPoller } from './log-poller.ts'
import { Runner } from './runner.ts'
import { ExclusiveRun } from '../crash/exclusive-run.ts'
import { type EngineStatus, engineStatus } from './status.ts'
import { type Retention, Sweeper } from './sweeper.ts'
import { RedriveSchedule } from './redrive-schedule.ts'
import { type Verification, type VerifyOptions, verifySubscription } from '../../verify/verify.ts'
import type { WorkerSettings } from '../ownership/worker-parts.ts'

export interface EngineOptions<Dialect extends string = string> extends Partial<Runtime> {
  readonly store: Store & { readonly dialect: Dialect }
  /** Projections and handlers, or subscriptions made with `defineSubscription`. SQL projections must be written for the store. */
  readonly subscriptions: readonly (Consumer<NoInfer<Dialect>> | Subscription<NoInfer<Dialect>>)[]
  /** The name of this process in leases and status. Default: host and process id, such as `web-1:4182`, plus a number if the process has several engines. */
  readonly name?: string
  /** The lease time: a process that stops renewing its leases loses its partitions after this time. Default: '10s'. */
  readonly lease?: Duration
  /** How often to poll for events that no notification announced. Default: '100ms'. */
  readonly poll?: Duration
  /** The heartbeat interval, at which this process also reads operators' acts. Default: '250ms'; at most a third of the lease. */
  readonly beat?: Duration
  /** The size of a page. Default: 1,000 events and 4 MiB. */
  readonly page?: { readonly events?: number; readonly bytes?: number }
  /** The memory for rows that are cached between pages. Default: 32 MiB; 0 disables the cache. */
  readonly cacheBytes?: number
  /**
   * How long letters are kept that the engine has resolved. Default: '30d'. Letters that an operator has resolved, discarded or edited are
   * always kept.
   */
  readonly retention?: Duration | 'forever'
  readonly logger?: Logger
  /** Reports code that blocks the thread: `startWatchdog()` of `holdfast/watchdog`. You must stop it yourself. */
  readonly watchdog?: Watchdog
  /**
   * `'letters'`: claims partitions and processes due lanes and redrives, but reads nothing from the sources. For a command that redrives
   * while no engine runs.
   */
  readonly only?: 'letters'
  /**
   * Also runs on a store with imported letters, which `start` refuses otherwise (`STORE_IMPORTED`): handlers repeat the side effects that
   * they had in the original store. Default: false.
   */
  readonly allowEffects?: boolean
}

/** The lifecycle of an engine, and reads. Operators' acts, such as a pause, are methods of `createOperator` and are audited. */
export interface Engine extends AsyncDisposable {
  /**
   * Creates the tables that the subscriptions need, and does nothing else: for a deployment step with the right to change the schema,
   * if the engines do not have it.
   */
  prepare(): Promise<void>
  /** Resolves when the subscriptions are set up and running. Rejects if a definition doesn't match the stored one. */
  start(): Promise<void>
  /** Finishes the work in progress and releases the leases. After the timeout (default: '10s') it stops by force: hanging code is abandoned, and the leases are released. */
  stop(options?: { readonly timeout?: Duration }): Promise<{ readonly forced: boolean }>
  /**
   * Resolves when all events that are in the sources now have their outcome and all operators' acts up to now are done. It has no timeout.
   * If a subscription needs an operator, because it is paused, failed or blocked by a parked event, `drain` drains the other subscriptions
   * and then rejects with all that it could not drain (`SUBSCRIPTION_PAUSED`, `SUBSCRIPTION_FAILED`, `SUBSCRIPTION_BLOCKED`). It knows of
   * blocked partitions only if this process owns them; for a blocked partition of another process it waits.
   */
  drain(options?: { readonly signal?: AbortSignal }): Promise<void>
  /** The result of `Operator.status`, plus the state of this process. */
  status(): Promise<EngineStatus>
  /** Replays the log and compares every outcome and row with the store. */
  verify(subscription: string, options?: VerifyOptions): Promise<Verification>
  letters(query: LetterQuery): Promise<readonly DeadLetter[]>
  read<Row, Columns>(projection: Projection<Row, Columns>): Reader<Row, Columns>
  /** Returns a function that removes the listener. */
  on<Name extends EngineEventName>(name: Name, listener: Listener<Name>): () => void
}

/** The type ensures that the list is complete. `defineConfig` uses it too. */
const optionNames: Record<keyof EngineOptions, true> = {
  store: true,
  subscriptions: true,
  name: true,
  lease: true,
  poll: true,
  beat: true,
  page: true,
  cacheBytes: true,
  retention: true,
  logger: true,
  watchdog: true,
  only: true,
  allowEffects: true,
  clock: true,
  timers: true,
  random: true,
}
export const engineOptionNames: readonly string[] = Object.keys(optionNames)

/** How long a forced stop waits for the store, which may be down. */
const forcedStopMs = 2_000

/**
 *     new ──start──► running ──stop──► stopped
 *
 * An engine runs once. To run again, create a new one.
 */
export function createEngine<const Dialect extends string>(options: EngineOptions<Dialect>): Engine {
  checkOptions(options, 'createEngine', engineOptionNames)
  checkStore(options.store, 'createEngine')
  if (!Array.isArray(options.subscriptions))
    throw new HoldfastError('OPTION_INVALID', 'createEngine: subscriptions must be an array.')
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
      logger.warn({ breaker, error }, 'the store cannot be used; the breaker uses only the state of this process'),
  })
  const exclusiveRun = new ExclusiveRun(runtime.clock)
  let isChecked = false
  const checkImported = async () => {
    if (!isChecked) await refuseImported(store)
    isChecked = true
  }
  const runners = new Map<string, Runner>()
  for (const declared of options.subscriptions) {
    const subscription = declared.kind === 'subscription' ? declared : defineSubscription(declared)
    if (runners.has(subscription.name))
      throw new HoldfastError('OPTION_INVALID', `Two subscriptions have the name ${subscription.name}.`)
    if (subscription.consumer.kind === 'sql') checkDialect(subscription.consumer, store)
    const look = () => attendance.look()
    runners.set(
      subscription.name,
      new Runner({
        store,
        subscription,
        runtime,
        settings,
        emitter,
        logger,
        breakers,
        exclusiveRun,
        watchdog,
        refuseImported: checkImported,
        look,
      }),
    )
  }
  const all = [...runners.values()]
  const attendance = new Heartbeat({ store, runners: all, runtime, settings, emitter, logger })
  const lookout = new LogPoller(store.log, all, runtime.timers, settings.pollMs)
  const timetable = new RedriveSchedule(store, all, runtime, logger)
  const retention = retentionOf(options, all)
  const sweeper = retention || all.some(remembers) ? new Sweeper(store, retention, runtime, logger) : undefined
  let running: Promise<unknown> | undefined
  let deafen: (() => void) | undefined
  let phase: 'new' | 'starting' | 'running' | 'stopped' = 'new'

  return {
    prepare: async () => {
      for (const runner of all) await runner.register({ isToRun: false })
    },
    start,
    stop,
    drain,
    status: () => engineStatus(store, all, runtime.clock),
    verify: async (name, verifying) => {
      const { subscription } = runnerOf(name)
      await refuseOtherVersion(store, subscription)
      return verifySubscription(store, subscription, runtime, verifying)
    },
    letters: async (query) => {
      const checked = letterQuery(query)
      runnerOf(checked.subscription)
      return store.letters.list(checked)
    },
    read: (projection) => read(store, projection),
    on: (name, listener) => emitter.on(name, listener),
    [Symbol.asyncDispose]: async () => {
      await stop()
    },
  }

  async function start(): Promise<void> {
    if (phase !== 'new') {
      const message = phase === 'stopped' ? 'This engine was stopped.' : 'This engine is already running.'
      throw new HoldfastError('ENGINE_STATE', message, { hint: 'An engine runs once: create a new one.' })
    }
    if (namesOn(store).has(settings.owner)) {
      throw new HoldfastError(
        'OPTION_INVALID',
        `An engine with the name ${settings.owner} already runs on this store.`,
        {
          hint: 'Give each engine its own name, or omit the name.',
        },
      )
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
    if (phase === 'running') {
      deafen = onAnnouncement(store, heed)
      running = run(unregistered)
    }
  }

  /** Resolves when all loops are stopped. */
  function run(unregistered: readonly Runner[]): Promise<unknown> {
    const isReading = settings.only !== 'letters'
    const beside = isReading ? [lookout.run(), timetable.run(), sweeper?.run()] : []
    return Promise.all([attendance.run(unregistered), ...beside])
  }

  /** An operator's act in this process takes effect here before the act returns. */
  function heed(announcement: Announcement): void {
    if (announcement.act === 'breaker') {
      for (const each of all) each.lookAtBreakers()
      return
    }
    const runner = runners.get(announcement.subscription)
    if (!runner) return
    switch (announcement.act) {
      case 'pause':
        return runner.setPause(announcement.pause)
      case 'resume':
        return runner.setPause(undefined)
      case 'reset':
        return attendance.look()
      default:
        announcement satisfies never
    }
  }

  /** False if the store or the source failed; the caller retries. */
  async function register(runner: Runner): Promise<boolean> {
    try {
      await runner.register()
      return true
    } catch (error) {
      if (!(error instanceof HoldfastError)) return false
      if (error instanceof StoreError && !isOwnMistake(error)) return false
      throw error
    }
  }

  async function stop({ timeout = '10s' }: { readonly timeout?: Duration } = {}): Promise<{ forced: boolean }> {
    phase = 'stopped'
    deafen?.()
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
    if (finished) {
      await ended
      return { forced: false }
    }
    for (const runner of all) runner.force()
    // The leases are released now: the caller closes the store next, and an owner that stays there would count as dead.
    await runtime.timers.sleep(forcedStopMs, waited.signal)
    return { forced: true }
  }

  async function end(attending: Promise<unknown>, ending: readonly Promise<void>[]): Promise<void> {
    await Promise.all([attending, ...ending])
    await breakers.close()
    await attendance.leave()
  }

  async function drain({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    if (signal !== undefined && !(signal instanceof AbortSignal))
      throw new HoldfastError('OPTION_INVALID', 'signal must be an AbortSignal.')
    if (phase !== 'running')
      throw new HoldfastError('ENGINE_STATE', 'Only a running engine can be drained.', { hint: 'Call start() first.' })
    const isReading = settings.only !== 'letters'
    const heard = attendance.heard()
    const ends = await Promise.allSettled(all.map((runner) => reachHead(runner, heard, isReading, signal)))
    const errors = ends.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []))
    if (errors.length === 0) return
    signal?.throwIfAborted()
    throw undrained(errors)
  }

  function runnerOf(name: string): Runner {
    const runner = runners.get(name)
    if (runner) return runner
    throw new HoldfastError('SUBSCRIPTION_UNKNOWN', `This engine has no subscription ${JSON.stringify(name)}.`, {
      hint: `Known: ${[...runners.keys()].join(', ') || 'none'}.`,
    })
  }
}

/** Whether a store error lasts until the user changes something. `start` rejects with such an error immediately. */
function isOwnMistake({ code }: StoreError): boolean {
  return code === 'STORE_REFUSED' || code === 'STORE_MISCONFIGURED'
}

const names = new WeakMap<object, Set<string>>()

/** The names of the engines on a store. Two engines with one name would keep taking partitions from each other. */
function namesOn({ subscriptions }: Store): Set<string> {
  const known = names.get(subscriptions) ?? new Set()
  names.set(subscriptions, known)
  return known
}

/** `heard`: resolves when the runner knows of operators' acts before the call, such as a reset or a resume. */
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
      // The error names the event and the next step.
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

/** A single error is thrown as it is. Several are combined under the code and the hint of the first. */
function undrained(errors: readonly unknown[]): unknown {
  const [first] = errors
  if (errors.length === 1 || !(first instanceof HoldfastError)) return first
  const told = errors.map((error) => (error instanceof Error ? withoutHint(error) : String(error)))
  const { hint } = first
  return new HoldfastError(first.code, told.join(' '), {
    cause: new AggregateError(errors),
    ...(hint !== undefined && { hint }),
  })
}

function withoutHint(error: Error): string {
  const hint = error instanceof HoldfastError ? error.hint : undefined
  return hint === undefined ? error.message : error.message.slice(0, -hint.length - 1)
}

function cannotDrain(
  runner: Runner,
  code: 'SUBSCRIPTION_FAILED' | 'SUBSCRIPTION_PAUSED' | 'ENGINE_STATE',
  why: string,
  cause?: unknown,
): HoldfastError {
  const { name } = runner.subscription
  return new HoldfastError(code, `${name} can't be drained: ${why}.`, {
    ...(cause !== undefined && { cause }),
    ...(code === 'SUBSCRIPTION_PAUSED' && {
      hint: `Resume it: holdfast subscriptions resume ${name} --reason "<why>"`,
    }),
  })
}

function retentionOf({ retention = '30d' }: EngineOptions, all: readonly Runner[]): Retention | undefined {
  if (retention === 'forever') return undefined
  const keptMs = positive(toMs(retention, 'retention'), 'retention')
  return { keptMs, subscriptions: all.map(({ subscription }) => subscription.name) }
}

/** Whether a subscription has inbox marks that expire. */
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
  const {
    name,
    lease = '10s',
    poll = '100ms',
    beat = '250ms',
    page = {},
    cacheBytes = 33_554_432,
    only,
    allowEffects = false,
  } = options
  checkOptions(page, 'page', ['events', 'bytes'])
  if (name !== undefined && (typeof name !== 'string' || name === ''))
    throw new HoldfastError('OPTION_INVALID', 'name must be a string.')
  if (only !== undefined && only !== 'letters')
    throw new HoldfastError('OPTION_INVALID', `only is ${JSON.stringify(only)}.`, {
      hint: "The only value is 'letters'.",
    })
  if (typeof allowEffects !== 'boolean')
    throw new HoldfastError('OPTION_INVALID', `allowEffects is ${String(allowEffects)}.`, {
      hint: 'Give true or false.',
    })
  const instance = createIds(runtime.clock, runtime.random)()
  return {
    owner: name ?? engineName(),
    instance,
    leaseMs: positive(toMs(lease, 'lease'), 'lease'),
    pollMs: positive(toMs(poll, 'poll'), 'poll'),
    beatMs: positive(toMs(beat, 'beat'), 'beat'),
    pageEvents: positive(page.events ?? 1_000, 'page.events'),
    pageBytes: positive(page.bytes ?? 4_194_304, 'page.bytes'),
    cacheBytes: cacheBytes === 0 ? 0 : positive(cacheBytes, 'cacheBytes'),
    only,
    allowEffects,
  }
}

function positive(value: number, what: string): number {
  if (Number.isSafeInteger(value) && value >= 1) return value
  throw new HoldfastError('OPTION_INVALID', `${what} must be a whole number, 1 or larger, got ${value}.`)
}

import { createEngine, type Engine, type EngineOptions } from '../../engine/process/engine.ts'
import type { Traced } from '../../engine/events.ts'
import { HoldfastError } from '../../errors.ts'
import type { Runtime } from '../../runtime/ports.ts'
import { realMs, turn } from '../turn.ts'

/** An engine in virtual time, with the state of its work. */
export interface TestProcess {
  readonly engine: Engine
  /** How often this process started the handler for the event at a position. */
  readonly attempts: ReadonlyMap<number, number>
  /** Handled, but not yet recorded. */
  readonly unwritten: ReadonlySet<number>
  /** Recorded. */
  readonly written: ReadonlySet<number>
  /** Skipped, with the reason. */
  readonly skipped: ReadonlyMap<number, string>
  start(): Promise<void>
  /**
   * Resolves when everything has its outcome, or when only time changes something: a stopped partition waits for its next
   * attempt. `isOver` ends it sooner.
   */
  settle(isOver?: () => boolean): Promise<void>
  /** Without advancing time, unless something hangs. */
  stop(advance: (ms: number) => Promise<void>): Promise<void>
}

export const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

// No other process uses the store, and appends and requests wake the engine: a day of virtual time must not be a day of polling.
const calm = { poll: '10m', lease: '30m', beat: '10m' } as const

export function createProcess(options: EngineOptions & Runtime): TestProcess {
  const engine = createEngine({ logger: silent, ...calm, ...options })
  const attempts = new Map<number, number>()
  const running = new Map<number, Traced>()
  const unwritten = new Set<number>()
  const written = new Set<number>()
  const skipped = new Map<number, string>()
  let activity = 0
  let hasStarted = false
  const ended = ({ position }: Traced) => {
    activity++
    running.delete(position)
  }
  engine.on('handler.started', (event) => {
    activity++
    running.set(event.position, event)
    attempts.set(event.position, (attempts.get(event.position) ?? 0) + 1)
  })
  engine.on('handler.completed', (event) => {
    ended(event)
    unwritten.add(event.position)
  })
  engine.on('handler.failed', ended)
  engine.on('handler.skipped', (event) => {
    ended(event)
    skipped.set(event.position, event.reason)
  })
  engine.on('message.acked', ({ position }) => {
    unwritten.delete(position)
    written.add(position)
  })
  engine.on('page.committed', () => activity++)
  engine.on('subscription.state', () => activity++)

  return { engine, attempts, unwritten, written, skipped, start, settle, stop }

  async function start(): Promise<void> {
    if (!hasStarted) await engine.start()
    hasStarted = true
  }

  async function settle(isOver: () => boolean = () => false): Promise<void> {
    await start()
    const ending = new AbortController()
    const draining = watchEnd(engine.drain({ signal: ending.signal }))
    const patience = new Patience()
    // A dead process never answers: nothing is awaited without checking `isOver`.
    while (!draining.end && !isOver()) {
      const before = activity
      await turns()
      if (activity !== before) patience.renew()
      else if (!draining.end && running.size === 0) {
        const standing = watchEnd(isStanding())
        while (!standing.end && !isOver()) await turns(1)
        if (standing.end?.value === true) break
      }
      if (patience.isOver && running.size > 0) throw hanging([...running.values()])
    }
    const { end } = draining
    ending.abort()
    if (end?.error !== undefined && !isOver() && !isPaused(end.error)) throw end.error
  }

  /** Whether all subscriptions wait for a time. */
  async function isStanding(): Promise<boolean> {
    const { subscriptions } = await engine.status()
    const states = subscriptions.map(({ state }) => state.state)
    return states.some((state) => state === 'blocked' || state === 'paused') && !states.some(isMoving)
  }

  async function stop(advance: (ms: number) => Promise<void>): Promise<void> {
    const stopping = engine.stop({ timeout: '10s' })
    if (running.size > 0) await advance(10_000)
    await stopping
  }
}

/** A promise whose end can be polled. It may never end, and may reject while nothing awaits it. */
function watchEnd<T>(promise: Promise<T>): { readonly end?: { readonly value?: T; readonly error?: unknown } } {
  const watched: { end?: { readonly value?: T; readonly error?: unknown } } = {}
  promise.then(
    (value) => void (watched.end = { value }),
    (error: unknown) => void (watched.end = { error }),
  )
  return watched
}

function isMoving(state: string): boolean {
  return state === 'starting' || state === 'catching-up'
}

function isPaused(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'SUBSCRIPTION_PAUSED'
}

// Both must be exceeded: a machine that was suspended has made no turns.
const patientMs = 3_000
const patientRounds = 1_000

/** Ends a test that would otherwise run into the timeout of the test runner without an explanation. */
class Patience {
  #since = realMs()
  #rounds = 0

  renew(): void {
    this.#since = realMs()
    this.#rounds = 0
  }

  get isOver(): boolean {
    return ++this.#rounds > patientRounds && realMs() - this.#since > patientMs
  }
}

function hanging(running: readonly Traced[]): HoldfastError {
  const names = running.map(({ subscription, key, eventType }) => `${subscription} at ${key} ${eventType}`)
  return new HoldfastError('ENGINE_STATE', `No progress: ${names.join(', ')} waits for something that never comes.`, {
    hint: 'Make the called service answer, or advance time beyond its timeout, with .after(…) of given or advance(…) of createTestEngine.',
  })
}

/** Enough turns of the event loop for ready work to reach its next wait. */
export async function turns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await turn()
}

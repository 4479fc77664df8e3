import { randomBytes, randomInt } from 'node:crypto'
import { type Database, queryOf, rowsOf, sever } from './database.ts'
import type { PgSession } from './driver.ts'
import { quote } from './identifier.ts'
import { presenceLock } from './locks.ts'
import { jittered, nap } from './nap.ts'
import { createNotifier } from './notifier.ts'

export type Kind = 'append' | 'release'

/**
 * A session of the process that receives notifications of other processes and holds the presence lock of this process. The server
 * releases the lock when the process dies, so other processes notice at once. Close it before the database.
 */
export interface Listener {
  /** The second number of the presence lock; undefined while the session is down. */
  readonly presence: number | undefined
  /** Aborted on close. */
  readonly signal: AbortSignal
  /** Resolves when the session is up, or the listener is closed. */
  ready(): Promise<void>
  onAppend(wake: () => void): () => void
  onRelease(wake: () => void): () => void
  /** Calls back when the session was lost, and possibly the server's last commits with it. */
  onLost(react: () => void): () => void
  /** Wakes the listeners of this process. */
  wake(kind: Kind): void
  /** Wakes the listeners of all processes. */
  notify(kind: Kind): void
  /**
   * The payload that a transaction must send on the channel to wake other processes when it commits; undefined if it should leave
   * this to us.
   */
  claim(kind: Kind): string | undefined
  readonly channel: string
  close(): Promise<void>
}

const firstWaitMs = 50
const mostWaitMs = 5_000
/** A connection can die silently, and nothing else is sent on this one that would detect it. */
const heartbeatMs = 5_000
const farewellMs = 500

export function createListener(db: Database): Listener {
  const channel = `holdfast_${db.schema}`
  // Our own notifications come back to us and are ignored.
  const self = randomBytes(6).toString('hex')
  const wakers: Readonly<Record<Kind, Set<() => void>>> = { append: new Set(), release: new Set() }
  const mourners = new Set<() => void>()
  const closing = new AbortController()
  const { signal } = closing
  const notifier = createNotifier<Kind>(async (kind) => {
    await db.query({ name: 'holdfast_notify', text: 'SELECT pg_notify($1, $2)' }, [channel, `${kind} ${self}`])
  }, signal)
  let number = randomInt(1, 2 ** 31)
  let presence: number | undefined
  let up = Promise.withResolvers<void>()
  let life: Promise<void> | undefined

  const listen = (callbacks: Set<() => void>) => (callback: () => void) => {
    callbacks.add(callback)
    begin()
    return () => void callbacks.delete(callback)
  }

  return {
    get presence() {
      return presence
    },
    signal,
    channel,
    claim: (kind) => (notifier.claim(kind) ? `${kind} ${self}` : undefined),
    ready: () => {
      begin()
      return up.promise
    },
    onAppend: listen(wakers.append),
    onRelease: listen(wakers.release),
    onLost: (react) => {
      mourners.add(react)
      return () => void mourners.delete(react)
    },
    wake,
    notify: (kind) => {
      wake(kind)
      notifier.notify(kind)
    },
    close: async () => {
      closing.abort()
      up.resolve()
      await Promise.all([life, within(farewellMs, notifier.close())])
    },
  }

  function begin(): void {
    if (!signal.aborted) life ??= live()
  }

  function wake(kind: Kind): void {
    // In their own microtask, so that an error of a listener does not affect the caller.
    for (const callback of wakers[kind]) queueMicrotask(callback)
  }

  /** Opens one session after another until it is closed. Never rejects. */
  async function live(): Promise<void> {
    let waitMs = firstWaitMs
    while (!signal.aborted) {
      const wasUp = await attend().catch(() => false)
      if (wasUp) waitMs = firstWaitMs
      await nap(jittered(waitMs), signal, true)
      waitMs = Math.min(waitMs * 2, mostWaitMs)
    }
  }

  /** A session from start to end; returns whether it was ever up. */
  async function attend(): Promise<boolean> {
    const over = new AbortController()
    const end = () => over.abort()
    const ended = new Promise<void>((resolve) => over.signal.addEventListener('abort', () => resolve()))
    signal.addEventListener('abort', end)
    const session = db.session()
    session.on('error', end)
    session.on('end', end)
    session.on('notification', ({ payload = '' }) => hear(payload))
    try {
      await Promise.race([open(session, over.signal), ended])
      await Promise.race([beat(session, over.signal), ended])
    } catch {
      // It could not be opened, or it broke: open another one.
    }
    end()
    signal.removeEventListener('abort', end)
    const wasUp = presence !== undefined
    if (wasUp) lose()
    await bury(session)
    return wasUp
  }

  async function open(session: PgSession, over: AbortSignal): Promise<void> {
    await session.connect()
    await session.query({ text: `LISTEN ${quote(channel)}` })
    // After a lost connection the server may still consider the old session alive; then another number is needed.
    while (!(await take(session, number))) number = randomInt(1, 2 ** 31)
    if (over.aborted) return
    presence = number
    up.resolve()
    // Notifications may have been missed.
    wake('append')
    wake('release')
  }

  function lose(): void {
    presence = undefined
    if (!signal.aborted) up = Promise.withResolvers()
    for (const react of mourners) react()
  }

  function hear(payload: string): void {
    const [kind, teller] = payload.split(' ')
    if (teller !== self && (kind === 'append' || kind === 'release')) wake(kind)
  }
}

async function take(session: PgSession, number: number): Promise<boolean> {
  const query = queryOf('SELECT pg_try_advisory_lock($1, $2) AS taken', [presenceLock, number])
  return rowsOf<{ taken: boolean }>(await session.query(query))[0]?.taken === true
}

/** Ends when the server does not answer any more. */
async function beat(session: PgSession, over: AbortSignal): Promise<void> {
  for (;;) {
    await nap(heartbeatMs, over)
    if (over.aborted) return
    const answer = session.query({ text: 'SELECT 1' }).then(() => true)
    if (!(await Promise.race([answer, nap(heartbeatMs, over).then(() => false)]))) return
  }
}

/** Closes the session, or disconnects if the server does not answer. */
async function bury(session: PgSession): Promise<void> {
  const goodbye = session.end().catch(() => undefined)
  await within(farewellMs, goodbye)
  sever(session)
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController()
  await Promise.race([work, nap(ms, done.signal)])
  done.abort()
}

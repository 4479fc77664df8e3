import { randomBytes, randomInt } from 'node:crypto'
import { type Database, queryOf, rowsOf, sever } from './database.ts'
import type { PgSession } from './driver.ts'
import { quote } from './identifier.ts'
import { presenceLock } from './locks.ts'
import { jittered, nap } from './nap.ts'
import { createNotifier } from './notifier.ts'

export type Kind = 'append' | 'release'

/**
 * A process's ear: a session of its own that hears what other processes tell, and that holds the process's presence lock. The
 * server lets go of that lock when the process dies, however it dies, so the others know at once. Close it before the database.
 */
export interface Listener {
  /** The second number of the presence lock; undefined while the session is down. */
  readonly presence: number | undefined
  /** Aborted when it is closed. */
  readonly signal: AbortSignal
  /** Resolves when the session is up, or the listener closed. */
  ready(): Promise<void>
  onAppend(wake: () => void): () => void
  onRelease(wake: () => void): () => void
  /** Calls back when the session was lost, and with it perhaps the last that the server knew. */
  onLost(react: () => void): () => void
  /** Wakes those who listen in this process. */
  wake(kind: Kind): void
  /** Wakes those who listen, in this process and in the others. */
  notify(kind: Kind): void
  /** What a transaction has to send on the channel to wake the others when it commits; undefined when it should leave that to us. */
  claim(kind: Kind): string | undefined
  readonly channel: string
  close(): Promise<void>
}

const firstWaitMs = 50
const mostWaitMs = 5_000
/** A connection can die without a word, and on this one nothing else is sent that would find out. */
const heartbeatMs = 5_000
const farewellMs = 500

export function createListener(db: Database): Listener {
  const channel = `holdfast_${db.schema}`
  // What we tell comes back to us too, and was heard already.
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
    // On their own, so that one who throws can't spoil the work of whoever wakes them.
    for (const callback of wakers[kind]) queueMicrotask(callback)
  }

  /** One session after the other, until it is closed. Never rejects. */
  async function live(): Promise<void> {
    let waitMs = firstWaitMs
    while (!signal.aborted) {
      const wasUp = await attend().catch(() => false)
      if (wasUp) waitMs = firstWaitMs
      await nap(jittered(waitMs), signal, true)
      waitMs = Math.min(waitMs * 2, mostWaitMs)
    }
  }

  /** A session from its beginning to its end; whether it was ever up. */
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
      // It could not be opened, or it broke: another one.
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
    // After a lost connection the server may still take our old session for alive; then it must be another number.
    while (!(await take(session, number))) number = randomInt(1, 2 ** 31)
    if (over.aborted) return
    presence = number
    up.resolve()
    // Something may have been told while nobody heard it.
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

/** Ends when the server doesn't answer any more. */
async function beat(session: PgSession, over: AbortSignal): Promise<void> {
  for (;;) {
    await nap(heartbeatMs, over)
    if (over.aborted) return
    const answer = session.query({ text: 'SELECT 1' }).then(() => true)
    if (!(await Promise.race([answer, nap(heartbeatMs, over).then(() => false)]))) return
  }
}

/** Says goodbye, and leaves if nobody answers. */
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

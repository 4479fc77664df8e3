import { EventEmitter, once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../postgres/port.ts'
import { type CutKind, createWire } from './wire.ts'

export interface ProxyOptions {
  /** Of the server behind it. */
  readonly url: string
  /** The SQL that counts as a commit for `cutAtCommit`. */
  readonly marker?: RegExp
}

export interface Proxy extends AsyncDisposable {
  /** The same database, through here. */
  readonly url: string
  /** What it did so far. A test of faults fails when the one it counts on is zero. */
  readonly counts: Readonly<Record<'accepted' | 'cut' | 'cutBefore' | 'cutAfter', number>>
  /** Ends every connection now. */
  cut(): void
  /** New connections are refused like on a machine where nobody listens; those that are there go on. */
  refuse(on: boolean): Promise<void>
  /** Connections are accepted and stay open, and nothing gets through, not even an end. It gets through afterwards. */
  blackhole(on: boolean): void
  /** Each way takes this long. */
  delay(ms: number): void
  /** Cuts at the next commit, once, on whichever connection it comes. */
  cutAtCommit(kind: CutKind): void
}

/** A network between a client and PostgreSQL that fails on demand. */
export async function createProxy({ url, marker = /\bcommit\b/i }: ProxyOptions): Promise<Proxy> {
  const target = new URL(url)
  const port = await freePort()
  const connections = new Map<AbortController, Promise<void>>()
  const counts = { accepted: 0, cut: 0, cutBefore: 0, cutAfter: 0 }
  const hole = Object.assign(new EventEmitter().setMaxListeners(0), { isOpen: true })
  let delayMs = 0
  let armed: CutKind | undefined

  const listener = createServer({ noDelay: true }, (client) => {
    counts.accepted++
    const connection = new AbortController()
    connections.set(
      connection,
      join(client, connection.signal).finally(() => connections.delete(connection)),
    )
  })

  async function pass(signal: AbortSignal): Promise<void> {
    if (delayMs > 0) await setTimeout(delayMs, undefined, { signal })
    while (!hole.isOpen) await once(hole, 'open', { signal })
  }

  /** Resolves when the connection is gone, however that came about. */
  async function join(client: Socket, signal: AbortSignal): Promise<void> {
    const server = connect({ host: target.hostname, port: Number(target.port || 5432), noDelay: true })
    const end = () => [client, server].forEach((socket) => socket.destroy())
    signal.addEventListener('abort', end)
    // A loop that reads learns of it by itself. The other side must not, as long as nothing gets through.
    for (const socket of [client, server]) socket.on('error', () => undefined)
    const wire = createWire({ client, server, cutAt, onCut })

    const pump = async (from: Socket, to: Socket, translate: (chunk: Buffer) => Buffer) => {
      for await (const chunk of readAll(from)) {
        await pass(signal)
        const bytes = translate(chunk)
        // Whoever is gone can't take it, but the rest has to be read, or the other side would wait for ever.
        if (bytes.length === 0 || !to.writable || to.write(bytes)) continue
        await Promise.race([once(to, 'drain', { signal }), once(to, 'close')])
      }
      await pass(signal)
      to.end()
    }
    await Promise.allSettled([pump(client, server, wire.toServer), pump(server, client, wire.toClient)])
    end()
  }

  function cutAt(sql: string): CutKind | undefined {
    if (armed === undefined || sql.search(marker) === -1) return undefined
    const kind = armed
    armed = undefined
    return kind
  }

  function onCut(kind: CutKind): void {
    counts[kind === 'before' ? 'cutBefore' : 'cutAfter']++
  }

  function cut(): void {
    counts.cut += connections.size
    abortAll()
  }

  function abortAll(): void {
    for (const connection of connections.keys()) connection.abort()
  }

  async function refuse(on: boolean): Promise<void> {
    if (on === !listener.listening) return
    // Its callback would wait for the connections that go on.
    if (on) listener.close()
    else await once(listener.listen(port, '127.0.0.1'), 'listening')
  }

  await refuse(false)
  const own = new URL(url)
  own.host = `127.0.0.1:${port}`
  return {
    url: own.href,
    counts,
    cut,
    refuse,
    blackhole: (on) => {
      hole.isOpen = !on
      if (!on) hole.emit('open')
    },
    delay: (ms) => {
      delayMs = ms
    },
    cutAtCommit: (kind) => {
      armed = kind
    },
    [Symbol.asyncDispose]: async () => {
      await refuse(true)
      abortAll()
      await Promise.all(connections.values())
    },
  }
}

/** A connection that breaks ends like one that is closed. */
async function* readAll(socket: Socket): AsyncGenerator<Buffer> {
  try {
    yield* socket as AsyncIterable<Buffer>
  } catch {}
}

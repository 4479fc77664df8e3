import type { Socket } from 'node:net'
import { createFrameReader, createSqlReader } from './protocol.ts'

/** Before the server hears of it, or after it has answered and before the client hears that. */
export type CutKind = 'before' | 'after'

export interface WireOptions {
  readonly client: Socket
  readonly server: Socket
  /** Asked with every SQL that is about to run: whether, and how, the connection has to be cut there. */
  readonly cutAt: (sql: string) => CutKind | undefined
  readonly onCut: (kind: CutKind) => void
}

/**
 * One connection, read along.
 *
 * A group is what the server answers with one ReadyForQuery: the opening, a simple query, or all up to a Sync. Clients
 * may send many before the first answer, so groups are counted on the way there and on the way back, and a group that
 * lost its answer is known by its number.
 */
export function createWire({ client, server, cutAt, onCut }: WireOptions) {
  const fromClient = createFrameReader('frontend')
  const fromServer = createFrameReader('backend')
  const sqlOf = createSqlReader()
  let asked = 0
  let answered = 0
  let unanswerable: number | undefined
  let isCut = false

  function cut(kind: CutKind): void {
    if (isCut) return
    isCut = true
    onCut(kind)
    client.destroy()
    // What was forwarded before still gets there.
    server.end()
  }

  /** What the client has sent; returns what the server shall get, and nothing once the connection is cut. */
  function toServer(chunk: Buffer): Buffer {
    const forward: Buffer[] = []
    if (isCut) return Buffer.alloc(0)
    for (const frame of fromClient(chunk)) {
      if (frame.type === 'encryption') {
        // An encrypted connection could not be read.
        client.write('N')
        continue
      }
      const sql = sqlOf(frame)
      const kind = sql === undefined || unanswerable !== undefined ? undefined : cutAt(sql)
      if (kind === 'before') {
        // The server may have the beginning of this group. Without its end it takes that back.
        server.write(Buffer.concat(forward))
        cut(kind)
        return Buffer.alloc(0)
      }
      if (kind === 'after') unanswerable = asked
      forward.push(frame.bytes)
      if (endsGroup.includes(frame.type)) asked++
    }
    return Buffer.concat(forward)
  }

  /** What the server has sent; returns what the client shall get. */
  function toClient(chunk: Buffer): Buffer {
    const forward: Buffer[] = []
    for (const { type, bytes } of fromServer(chunk)) {
      if (answered !== unanswerable) forward.push(bytes)
      if (type !== 'Z') continue
      if (answered === unanswerable) {
        client.write(Buffer.concat(forward), () => cut('after'))
        return Buffer.alloc(0)
      }
      answered++
    }
    return Buffer.concat(forward)
  }

  return { toServer, toClient }
}

const endsGroup = ['startup', 'Q', 'S', 'F']

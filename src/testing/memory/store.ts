import { HoldfastError } from '../../errors.ts'
import type { Clock, Timers } from '../../runtime/ports.ts'
import { systemRuntime } from '../../runtime/system.ts'
import type { Store } from '../../store.ts'
import { directLink, type Link } from '../link.ts'
import { memoryAudit } from './audit.ts'
import { memoryBreakers } from './breakers.ts'
import { Connection } from './connection.ts'
import { Handle, type MemoryHandle } from './handle.ts'
import { memoryInbox } from './inbox.ts'
import { memoryLetters } from './letters.ts'
import { memoryLog } from './log.ts'
import { memoryPurge } from './purge.ts'
import { memoryRebuilds } from './rebuilds.ts'
import { memoryRedrives } from './redrives.ts'
import { restore } from './restore.ts'
import { memoryRevisions } from './revisions.ts'
import { memoryRows } from './rows.ts'
import { Server } from './server.ts'
import { snapshot } from './snapshot.ts'
import type { Read, UserRow } from './state.ts'
import { memorySubscriptions } from './subscriptions.ts'

/** A store for tests that exists as long as the program. */
export interface MemoryStore extends Store {
  readonly dialect: 'memory'
  /**
   * Your own transaction, as in a database: the changes of `work` are committed when it resolves, and rolled back when it throws.
   * Pass the handle to `log.append` as `tx`.
   */
  transaction<T>(work: (handle: MemoryHandle) => Promise<T>): Promise<T>
  /** The current content of your own table, by key: what was written with the handles of transactions. */
  table(name: string): ReadonlyMap<string, UserRow>
}

export interface ConnectOptions {
  /** How the process reaches the server. Default: without faults. */
  readonly link?: Link
  readonly timers?: Timers
  /** The clock of the process; leases use the clock of the server. */
  readonly clock?: Clock
}

/** An in-memory database server for several processes that behaves like PostgreSQL. */
export interface MemoryServer {
  /** The store of one process. */
  connect(options?: ConnectOptions): MemoryStore
  /** The server notices that a process is gone: its transactions are rolled back, and waiting transactions continue. */
  disconnect(store: MemoryStore): void
  /** Crashes and restarts: committed data stays, and running work is lost. */
  crash(): void
  /** Adds a unique constraint on a column of a projection's table, like a user's unique index. */
  addUnique(table: string, column: string): void
}

export function createMemoryServer({ clock = systemRuntime.clock }: { readonly clock?: Clock } = {}): MemoryServer {
  const server = new Server(clock)
  const connections = new WeakMap<MemoryStore, Connection>()
  return {
    connect: ({ link = directLink, timers = systemRuntime.timers, clock: own = clock } = {}) => {
      const connection = new Connection(server, link, timers, own)
      const store = storeOf(connection)
      connections.set(store, connection)
      return store
    },
    disconnect: (store) => connections.get(store)?.disconnect(),
    crash: () => server.crash(),
    addUnique: (table, column) => {
      const found = server.state.tables.get(table)
      if (!found) throw new HoldfastError('OPTION_INVALID', `There is no table ${table}.`)
      found.unique.add(column)
    },
  }
}

/** An in-memory store that behaves like PostgreSQL, for one process. */
export function createMemoryStore(options: { readonly clock?: Clock; readonly timers?: Timers } = {}): MemoryStore {
  return createMemoryServer(options).connect(options)
}

function storeOf(connection: Connection): MemoryStore {
  const { server } = connection
  const read: Read = (what, look, about) => connection.query(what, () => look(server.state), about)
  const close = async () => connection.close()
  return {
    dialect: 'memory',
    log: memoryLog(connection),
    subscriptions: memorySubscriptions(connection),
    letters: { ...memoryLetters(read), ...memoryRevisions(connection), ...memoryPurge(connection) },
    rows: memoryRows(read),
    inbox: memoryInbox(connection),
    breakers: memoryBreakers(connection),
    redrives: memoryRedrives(connection),
    rebuilds: memoryRebuilds(connection),
    audit: memoryAudit(connection),
    restore: (parts) => restore(connection, parts),
    snapshot: (look) => snapshot(connection, look),
    transaction: (work) => transaction(connection, work),
    table: (name) => new Map(server.state.userTables.get(name)),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Like a user's own client: nothing is retried, and errors are thrown unchanged. */
async function transaction<T>(connection: Connection, work: (handle: MemoryHandle) => Promise<T>): Promise<T> {
  const { tx } = await connection.open('sql.begin', () => undefined, true)
  const handle = new Handle(connection, tx)
  try {
    const result = await work(handle.tables)
    await handle.settle()
    handle.close()
    await connection.commit(tx, 'sql.commit')
    return result
  } catch (error) {
    handle.close()
    await connection.rollback(tx)
    throw error
  }
}

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

/** A store that lasts as long as the program, for tests. */
export interface MemoryStore extends Store {
  /**
   * A transaction of your own, as you would have it in a database: what `work` does with the handle is there when it resolves, and never
   * was when it throws. Give the handle to `log.append` as its `tx`.
   */
  transaction<T>(work: (handle: MemoryHandle) => Promise<T>): Promise<T>
  /** A table of your own as it is now, by key: what was put there with the handles of transactions. */
  table(name: string): ReadonlyMap<string, UserRow>
}

export interface ConnectOptions {
  /** How the process reaches the server. Everything arrives, unless you say otherwise. */
  readonly link?: Link
  readonly timers?: Timers
  /** The clock of the process; leases go by that of the server. */
  readonly clock?: Clock
}

/** A database server in memory that behaves like PostgreSQL, for several processes. */
export interface MemoryServer {
  /** What one process has of it. */
  connect(options?: ConnectOptions): MemoryStore
  /** The server has noticed that a process is gone: its transactions are rolled back, and whoever waits for them goes on. */
  disconnect(store: MemoryStore): void
  /** It falls and comes up again: what was committed is there, and everything that was under way is not. */
  crash(): void
  /** Lets no two rows in the table of a projection have the same value in a column, as a unique index of a user's would. */
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

/** A store in memory that behaves like PostgreSQL, with one process at it. */
export function createMemoryStore(options: { readonly clock?: Clock; readonly timers?: Timers } = {}): MemoryStore {
  return createMemoryServer(options).connect(options)
}

function storeOf(connection: Connection): MemoryStore {
  const { server } = connection
  const read: Read = (what, look, about) => connection.query(what, () => look(server.state), about)
  const close = async () => connection.close()
  return {
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

/** As a user's own client does it: nothing is tried again, and what goes wrong there is theirs. */
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

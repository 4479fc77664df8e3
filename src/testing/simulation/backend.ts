import { StoreError } from '../../errors.ts'
import type { Runtime } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import type { Link } from '../link.ts'
import { createMemoryServer, type MemoryStore } from '../memory/store.ts'
import { createTemporaryStore } from '../temporary-store.ts'
import { linked } from './linked.ts'
import type { Place } from './network.ts'
import type { Process } from './process.ts'

/** The persistent part of a simulated world, and how processes reach it. */
export interface Backend {
  readonly place: Omit<Place, 'isUp'>
  connect(process: Process, link: Link): Store
  /** A direct, reliable view of the store. */
  readonly witness: Store
  /** The process is gone: its uncommitted work is rolled back. */
  disconnect(process: Process): void
  /** The server crashes and restarts: all uncommitted work is rolled back. */
  crash(): void
  close(): Promise<void>
}

/** A SQLite file that several processes share. The file is real; only the processes are simulated. */
export async function openSqlite({ clock }: Runtime): Promise<Backend> {
  const store = await createTemporaryStore({ clock })
  const name = 'the file'
  return {
    place: {
      name,
      isLocal: true,
      isReal: true,
      unavailable: () => new StoreError('STORE_UNAVAILABLE', `${name} can't be written.`),
      busy: () => new StoreError('STORE_BUSY', `${name} is locked.`),
    },
    connect: (_process, link) => linked(store, link),
    witness: store,
    disconnect: () => undefined,
    crash: () => undefined,
    close: () => store.close(),
  }
}

/** A server that behaves like PostgreSQL: many processes, each of which can lose its connection at any statement. */
export async function openServer({ clock, timers }: Runtime): Promise<Backend> {
  const server = createMemoryServer({ clock })
  const connected = new Map<Process, MemoryStore>()
  const name = 'the server'
  return {
    place: {
      name,
      isLocal: false,
      isReal: false,
      unavailable: () => new StoreError('STORE_UNAVAILABLE', `The connection to ${name} was lost.`),
      busy: () => new StoreError('STORE_BUSY', `${name} is busy.`),
    },
    connect: (process, link) => {
      const store = server.connect({ link, ...process.runtime })
      connected.set(process, store)
      return store
    },
    witness: server.connect({ timers, clock }),
    disconnect: (process) => {
      const store = connected.get(process)
      connected.delete(process)
      if (store) server.disconnect(store)
    },
    crash: () => server.crash(),
    close: async () => undefined,
  }
}

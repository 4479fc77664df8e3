import { StoreError } from '../../errors.ts'
import type { Clock } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import type { Link } from '../link.ts'
import { createTemporaryStore } from '../temporary-store.ts'
import { linked } from './linked.ts'
import type { Place } from './network.ts'
import type { Process } from './process.ts'

/** What lasts in a simulated world, and how processes reach it. */
export interface Backend {
  readonly place: Omit<Place, 'isUp'>
  connect(process: Process, link: Link): Store
  /** Somebody who is told the truth, at once. */
  readonly witness: Store
  /** The process is gone: what it had begun and not committed is undone. */
  disconnect(process: Process): void
  /** The server goes down and comes back: all that was begun and not committed is undone. */
  crash(): void
  close(): Promise<void>
}

/** A file of SQLite that several processes share. It is the real thing; only the processes are simulated. */
export async function openSqlite(clock: Clock): Promise<Backend> {
  const store = await createTemporaryStore({ clock })
  const name = 'the file'
  return {
    place: {
      name,
      isLocal: true,
      isReal: true,
      unavailable: () => new StoreError('STORE_UNAVAILABLE', `${name} can't be written.`),
    },
    connect: (_process, link) => linked(store, link),
    witness: store,
    disconnect: () => undefined,
    crash: () => undefined,
    close: () => store.close(),
  }
}

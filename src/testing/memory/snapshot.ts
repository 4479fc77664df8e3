import type { StoreMoment } from '../../store.ts'
import { whole } from '../../source/share.ts'
import { archive } from './archive.ts'
import type { Connection } from './connection.ts'
import { memoryLetters } from './letters.ts'
import { momentPage } from './pages.ts'
import { statesOf } from './partitions.ts'
import { memoryRows } from './rows.ts'
import type { Read } from './state.ts'

/** One moment, which the server keeps while it is read. */
export async function snapshot<T>(connection: Connection, look: (moment: StoreMoment) => Promise<T>): Promise<T> {
  const { server } = connection
  const state = await connection.query('snapshot', () => server.moment())
  const read: Read = (what, of) => connection.query(`snapshot.${what}`, () => of(state))
  const letters = memoryLetters(read)
  return look({
    log: { readAll: (after, limits, share = whole) => read('readAll', () => momentPage(state, after, limits, share)) },
    rows: memoryRows(read),
    partitions: (subscription) => read('partitions', () => statesOf(state, subscription)),
    heldLanes: letters.heldLanes,
    letters: letters.ofPartition,
    archive: () => archive(server, state),
  })
}

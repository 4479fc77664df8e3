import { resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { HoldfastError } from '../errors.ts'
import type { PageLimits } from '../log/log-store.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Clock } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import { whole } from '../source/share.ts'
import type { Store, StoreMoment } from '../store.ts'
import { archive } from './copy/archive.ts'
import { sqliteAudit } from './audit/audit.ts'
import { Bell } from './connection/bell.ts'
import { sqliteBreakers } from './breaker/breakers.ts'
import { Database, pragmas } from './connection/database.ts'
import { isBusy } from './connection/errors.ts'
import { WriteGate } from './connection/gate.ts'
import { createHolder, forgetHolder } from './connection/holder.ts'
import { sqliteInbox } from './subscription/inbox.ts'
import { heldLanes, partitionLetters, sqliteLetters } from './letters/letters.ts'
import { sqliteLog } from './log/log.ts'
import { isFree } from './subscription/members.ts'
import { migrate, refuseForeign } from './migrations/migrate.ts'
import { migrations } from './migrations/index.ts'
import { readPage } from './log/pages.ts'
import { type PartitionRow, partitionRows, toState } from './subscription/partitions.ts'
import { Performer } from './subscription/perform.ts'
import { sqliteRebuilds } from './rebuild/rebuild.ts'
import { sqliteRedrives } from './redrive/redrives.ts'
import { sqliteRows } from './subscription/rows.ts'
import { sqliteSubscriptions } from './subscription/subscriptions.ts'
import { Turns } from './connection/turns.ts'

export {
  defineSqlProjection,
  type SqliteRow,
  type SqliteStatement,
  type SqliteTransaction,
  type SqliteValue,
} from './subscription/projection.ts'

export interface SqliteStoreOptions {
  /** The database file; created if it does not exist. Several processes may open it. */
  readonly file: string
  /** How long a statement waits for a lock of another process; it blocks this process. Default: '1s'. */
  readonly busyTimeout?: Duration
  readonly clock?: Clock
}

export interface SqliteStore extends Store {
  readonly dialect: 'sqlite'
}

const openTries = 50

/** Opens a store in a file, and migrates its schema. */
export async function createSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  checkOptions(options, 'createSqliteStore', ['file', 'busyTimeout', 'clock'])
  const { file, busyTimeout = '1s', clock = systemRuntime.clock } = options
  if (typeof file !== 'string' || file === '' || file.includes(':memory:')) {
    throw new HoldfastError('OPTION_INVALID', `The file of a SQLite store is ${JSON.stringify(file)}.`, {
      hint: 'Give the path of a file. For tests, use createTemporaryStore() of holdfast/testing.',
    })
  }
  const busyMs = toMs(busyTimeout, 'busyTimeout')
  // Once: the process may change its working directory before a snapshot opens the file again.
  const path = resolve(file)
  const db = await open(path, busyMs, clock)
  const self = createHolder()
  const gate = new WriteGate()
  const bell = new Bell()
  const performer = new Performer({ file: path, open: () => openSecond(path, busyMs), gate, clock })

  const close = async () => {
    forgetHolder(self)
    performer.close()
    db.close()
    gate.abandon()
  }
  const turns = new Turns()
  return {
    dialect: 'sqlite',
    log: turns.share(sqliteLog({ db, clock, gate, performer, busyMs })),
    subscriptions: turns.share(sqliteSubscriptions({ db, clock, self, gate, performer, bell })),
    letters: turns.share(sqliteLetters(db, gate)),
    rows: turns.share(sqliteRows(db)),
    inbox: turns.share(sqliteInbox(db, gate)),
    breakers: turns.share(sqliteBreakers(db, clock, gate)),
    redrives: turns.share(sqliteRedrives(db, clock, gate, bell)),
    rebuilds: turns.share(sqliteRebuilds(db, clock, gate, bell)),
    audit: turns.share(sqliteAudit(db, gate)),
    snapshot: (read) => snapshot(path, busyMs, turns, (row) => isFree(row, self, clock.now()), read),
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function open(file: string, busyMs: number, clock: Clock): Promise<Database> {
  for (let tries = 1; ; tries++) {
    const db = new Database(file, { busyMs })
    try {
      // Before anything is changed, including the journal mode.
      refuseForeign(db, migrations)
      db.exec(pragmas)
      migrate(db, migrations, clock.now())
      return db
    } catch (error) {
      db.close()
      // Turning on WAL does not wait for locks; processes that create the file at the same time conflict briefly.
      if (!isBusy(error) || tries === openTries) throw error
      await setTimeout(20)
    }
  }
}

/** For user SQL, on a migrated file. */
function openSecond(file: string, busyMs: number): Database {
  const db = new Database(file, { busyMs })
  try {
    db.exec(pragmas)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** A separate connection in a read transaction: in WAL mode it sees one moment, and delays no other connection. */
async function snapshot<T>(
  file: string,
  busyMs: number,
  turns: Turns,
  isFreeNow: (row: PartitionRow) => boolean,
  read: (moment: StoreMoment) => Promise<T>,
): Promise<T> {
  const db = new Database(file, { readOnly: true, busyMs })
  try {
    db.exec('BEGIN')
    // The first read starts the snapshot, not BEGIN.
    db.get('SELECT max(position) FROM holdfast_events')
    const moment: StoreMoment = {
      log: turns.share({
        readAll: async (after: number, limits: PageLimits, share = whole) => readPage(db, after, limits, share),
      }),
      rows: turns.share(sqliteRows(db)),
      partitions: async (subscription) => partitionRows(db, subscription).map(toState),
      archive: () => archive(db, isFreeNow),
      heldLanes: async (subscription, partition) => heldLanes(db, subscription, partition),
      letters: async (subscription, partition, after, limit) =>
        partitionLetters(db, subscription, partition, after, limit),
    }
    return await read(turns.share(moment))
  } finally {
    db.close()
  }
}

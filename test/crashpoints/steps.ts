import { DatabaseSync } from 'node:sqlite'
import {
  defineEvents,
  defineHandler,
  definePolicy,
  defineProjection,
  exponential,
  failure,
  type HandlerDefinition,
  park,
  retry,
  type StandardSchema,
  type Store,
} from 'holdfast'
import { sqlProjection } from '../../src/projection/sql-projection.ts'
import type { MemoryHandle } from '../../src/testing/memory/handle.ts'
import type { MemoryStore } from '../../src/testing/memory/store.ts'
import type { Outside } from '../../src/testing/simulation/app.ts'
import type { Scene } from './scene.ts'

export interface Step {
  readonly n: number
  /** What is wrong with it until the code is mended. */
  readonly flaw: string
}

const step: StandardSchema<Step> = {
  '~standard': {
    version: 1,
    vendor: 'crashpoints',
    validate: (value) => {
      const { n, flaw } = (value ?? {}) as Step
      return Number.isSafeInteger(n) && typeof flaw === 'string'
        ? { value: { n, flaw } }
        : { issues: [{ message: 'is no step' }] }
    },
  },
}

export const steps = defineEvents({ Stepped: step })

/** A fold that shows every event lost, repeated or out of order. */
export function walks(scene: Scene, options: { readonly version?: number; readonly maxDeaths?: number } = {}) {
  const { version = 1, maxDeaths = 3 } = options
  return defineProjection('walks', {
    version,
    events: steps,
    initial: () => ({ last: 0, trail: version }),
    on: {
      Stepped: (row, { data }) => {
        if (data.flaw === 'bad' && !scene.isMended) throw new RangeError('a bug')
        return { last: data.n, trail: (row.trail * 31 + data.n) % 1_000_003 }
      },
    },
    columns: { last: 'integer' },
    maxDeaths,
  })
}

export const hasty = definePolicy({
  transient: retry({ attempts: 3, backoff: exponential('200ms', { cap: '1s' }) }).then(park),
  outage: false,
})

/** A handler whose effects are kept by the service that it calls. */
export function calls(
  scene: Scene,
  outside: Outside,
  options: Partial<Omit<HandlerDefinition<typeof steps>, 'events' | 'on'>> & { readonly name?: string } = {},
) {
  const { name = 'calls', ...others } = options
  return defineHandler(name, {
    events: steps,
    on: {
      Stepped: async ({ key, data }, { idempotencyKey, signal }) => {
        const { n, flaw } = data
        const isFlawed = !scene.isMended
        if (isFlawed && flaw === 'bad') throw failure.permanent('a bug')
        if (isFlawed && flaw === 'later') throw failure.transient('not yet')
        if (isFlawed && flaw === 'deadly') await outside.die()
        if (isFlawed && flaw === 'down') throw failure.dependency('it is down')
        if (isFlawed && flaw === 'slow') await scene.wait(500)
        await outside.call('call', () => void scene.effects.push({ handler: name, key, n, idempotencyKey }), signal)
      },
    },
    failure: hasty,
    timeout: '3s',
    ...others,
  })
}

interface Database {
  exec(sql: string): void
  prepare(sql: string): { run(...values: readonly (string | number)[]): unknown }
}

/** SQL of one's own, in either store: each event is put once, and a second time would throw. */
export function notes(scene: Scene) {
  return sqlProjection(scene.witness.dialect, 'notes', {
    events: steps,
    on: {
      Stepped: async ({ key, data }, tx: MemoryHandle | Database) => {
        await put(tx, key, data.n)
        if (data.flaw === 'bad' && !scene.isMended) throw new RangeError('a bug')
      },
    },
    reset: async (tx: MemoryHandle | Database) => {
      if (!isMemory(tx)) return tx.exec('DELETE FROM notes')
      for (const [key] of await tx.all('notes')) await tx.delete('notes', key)
    },
  })
}

/** What SQL has put there, whatever the ledger says. */
export function notesOf(witness: Store): string[] {
  if ('table' in witness) return [...(witness as MemoryStore).table('notes').keys()].toSorted()
  const db = new DatabaseSync((witness as Store & { readonly file: string }).file, { readOnly: true })
  try {
    const isThere = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'notes'").get() !== undefined
    return isThere
      ? db
          .prepare('SELECT id FROM notes ORDER BY id')
          .all()
          .map(({ id }) => String(id))
      : []
  } finally {
    db.close()
  }
}

function isMemory(tx: MemoryHandle | Database): tx is MemoryHandle {
  return 'put' in tx
}

async function put(tx: MemoryHandle | Database, key: string, n: number): Promise<void> {
  if (isMemory(tx)) return tx.insert('notes', `${key}-${n}`, { n })
  tx.exec('CREATE TABLE IF NOT EXISTS notes (id TEXT PRIMARY KEY, n INTEGER NOT NULL)')
  tx.prepare('INSERT INTO notes (id, n) VALUES (?, ?)').run(`${key}-${n}`, n)
}

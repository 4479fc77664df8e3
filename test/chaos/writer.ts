// Appends from a process of its own, and tells what became of each append.
import { flushCompileCache } from 'node:module'
import { setTimeout } from 'node:timers/promises'
import { createLog, HoldfastError, StoreError } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createRandom } from 'holdfast/testing'
import { Pool } from 'pg'
import { type Batch, draftsOf, idOf } from './batch.ts'
import { attendParent } from './child.ts'
import { codeOf } from './code.ts'
import { createGate } from './gate.ts'
import { createLanes, type Lane } from './lanes.ts'
import { createOutbox } from './outbox.ts'
import { ledgerEvents } from './postings.ts'

export interface WriterSettings {
  readonly url: string
  readonly name: string
  readonly seed: number
}

export type WriterReport =
  | { readonly kind: 'ready' | 'paused' }
  | { readonly kind: 'acknowledged'; readonly batch: Batch; readonly repeated: boolean }
  /** It got no answer and did not ask again: the events may be there, all of them or none. Nothing more comes for the key. */
  | { readonly kind: 'unknown'; readonly batch: Batch }
  /** It failed, and will be tried again. */
  | { readonly kind: 'failed'; readonly code: string }
  | { readonly kind: 'problem'; readonly what: string }

export type WriterCommand =
  | { readonly verb: 'run'; readonly settings: WriterSettings }
  /** `poison`: the next event is poison, on a key of its own. */
  | { readonly verb: 'pause' | 'resume' | 'poison' | 'stop' }

type Random = ReturnType<typeof createRandom>

const appenders = 3
/** One append in so many is in a transaction, of those one in so many is rolled back, and one without an answer is given up. */
const oneIn = { transaction: 3, rollback: 10, givingUp: 5, longTransaction: 100 }

if (import.meta.main) {
  const run = Promise.withResolvers<WriterSettings>()
  const gate = createGate(appenders, () => parent.tell({ kind: 'paused' }))
  let wishes = 0
  const parent = attendParent<WriterReport, WriterCommand>((command) => {
    if (command.verb === 'run') run.resolve(command.settings)
    else if (command.verb === 'poison') wishes++
    else gate[command.verb]()
  })
  flushCompileCache()
  parent.tell({ kind: 'ready' })
  const settings = await run.promise
  const wished = () => (wishes > 0 ? `${settings.name}-wish-${wishes--}-${Math.round(performance.now())}` : undefined)
  await work(settings, gate.pass, wished, parent.tell)
  parent.leave()
}

async function work(
  { url, name, seed }: WriterSettings,
  pass: () => Promise<boolean>,
  wished: () => string | undefined,
  tell: (report: WriterReport) => void,
): Promise<void> {
  await using store = await createPostgresStore({ connection: url, migrate: false, connections: appenders })
  const log = createLog({ store, events: ledgerEvents })
  const pool = new Pool({ connectionString: url, max: appenders })
  pool.on('error', () => undefined)
  // One that is lent out and idle tells it itself, and would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined))
  const outbox = createOutbox(pool, log)

  await Promise.all(
    Array.from({ length: appenders }, async (_, i) => {
      const random = createRandom(seed + i)
      const lanes = createLanes(`${name}${i}`, random)
      while (await pass()) {
        const wish = wished()
        await append(wish === undefined ? lanes.pick() : lanes.poisoned(wish), random)
        await setTimeout(40 + random.below(120))
      }
    }),
  )
  await pool.end()

  async function append(lane: Lane, random: Random): Promise<void> {
    const inTransaction = random.below(oneIn.transaction) === 0
    const isRolledBack = inTransaction && random.below(oneIn.rollback) === 0
    const holdMs = random.below(oneIn.longTransaction) === 0 ? 300 : random.below(20)
    const options = random.below(2) === 0 ? { expectedVersion: lane.version } : {}
    const batch: Batch = { ...lane.next(), inTransaction }
    for (;;) {
      try {
        if (isRolledBack) return void (await outbox.rollBack(batch, holdMs))
        const appending = inTransaction ? outbox.append(batch, holdMs) : log.append(batch.key, draftsOf(batch), options)
        const { repeated } = await appending
        lane.advance(batch.amounts.length)
        return tell({ kind: 'acknowledged', batch, repeated })
      } catch (error) {
        const isOutage = error instanceof HoldfastError ? passes(error) : inTransaction
        tell(isOutage ? { kind: 'failed', code: codeOf(error) } : { kind: 'problem', what: describe(batch, error) })
        if (isRolledBack) return
        if (!isOutage || random.below(oneIn.givingUp) === 0) {
          lane.retire()
          return tell({ kind: 'unknown', batch })
        }
        await setTimeout(30 + random.below(100))
      }
    }
  }
}

/** Whether waiting mends it: this is what an outage may look like to who appends, and nothing else is. */
function passes(error: HoldfastError): boolean {
  return error instanceof StoreError && (error.code === 'STORE_BUSY' || error.code === 'STORE_UNAVAILABLE')
}

function describe({ key, first }: Batch, error: unknown): string {
  return `the append of ${idOf(key, first)} failed with ${codeOf(error)}: ${String(error)}`
}

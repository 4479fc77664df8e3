import { HoldfastError } from '../errors.ts'
import { parseJson } from '../event/parse.ts'
import type { Projection } from '../projection/projection.ts'
import type { ListedRow, TableSpec } from '../projection/row-store.ts'
import { checkOptions, checkStore } from '../runtime/options.ts'
import type { Store, StoreMoment } from '../store.ts'
import type { PartitionState } from '../subscription/subscription-store.ts'
import { generationName, generationTable } from './generation.ts'

export interface DiffOptions {
  readonly store: Store
  /** Which version to compare with the live one; that of the projection's own code unless you say otherwise. */
  readonly version?: number
  /** How many differences to show. 20 unless you say otherwise. */
  readonly limit?: number
}

/** Data as JSON; undefined where there is no such row. */
export interface RowDifference {
  readonly key: string
  readonly live: string | undefined
  readonly rebuilt: string | undefined
}

export interface RebuildDiff {
  readonly same: number
  readonly different: number
  readonly onlyLive: number
  readonly onlyRebuilt: number
  /** The first, in order of their keys. */
  readonly differences: readonly RowDifference[]
  /** Whether both had applied the same events when they were compared. If not, some of the differences are only that. */
  readonly isLevel: boolean
}

const rowsPerPage = 1_000

/**
 * Compares what a rebuilt version came to with what is live, row by row, at one moment. Only the data counts: which event changed a row
 * last may well be another one. Takes memory for a page of each.
 */
export async function diffRebuild(projection: Projection, options: DiffOptions): Promise<RebuildDiff> {
  checkOptions(options, 'diffRebuild', ['store', 'version', 'limit'])
  checkStore(options.store, 'diffRebuild')
  const { store, version = projection.version, limit = 20 } = options
  if (projection.kind !== 'fold') {
    throw new HoldfastError(
      'OPTION_INVALID',
      `${String((projection as { name?: unknown }).name)} has no table of ours.`,
      {
        hint: 'What SQL of your own writes, only you can compare.',
      },
    )
  }
  return store.snapshot((moment) => compare(moment, projection, version, limit))
}

async function compare(
  moment: StoreMoment,
  { name, table }: Projection,
  version: number,
  limit: number,
): Promise<RebuildDiff> {
  const states = await moment.partitions(generationName(name, version))
  if (states.length === 0) {
    throw new HoldfastError('REBUILD_UNKNOWN', `The store has no version ${version} of ${name} beside the live one.`, {
      hint: 'Rebuild it first.',
    })
  }
  // The columns are made from the data, and may be others in the other version.
  const ofLive = rowsOf(moment, { ...table, columns: [] })
  const ofRebuilt = rowsOf(moment, { ...generationTable(table, version), columns: [] })
  const counts = { same: 0, different: 0, onlyLive: 0, onlyRebuilt: 0 }
  const differences: RowDifference[] = []
  let live = (await ofLive.next()).value
  let rebuilt = (await ofRebuilt.next()).value
  while (live || rebuilt) {
    const order = !live ? 1 : !rebuilt ? -1 : compareKeys(live.key, rebuilt.key)
    const pair = { live: order <= 0 ? live : undefined, rebuilt: order >= 0 ? rebuilt : undefined }
    const what = kindOf(pair.live, pair.rebuilt)
    counts[what]++
    if (what !== 'same' && differences.length < limit) {
      const key = (pair.live ?? pair.rebuilt)?.key as string
      differences.push({ key, live: pair.live?.json, rebuilt: pair.rebuilt?.json })
    }
    if (pair.live) live = (await ofLive.next()).value
    if (pair.rebuilt) rebuilt = (await ofRebuilt.next()).value
  }
  return { ...counts, differences, isLevel: isLevel(await moment.partitions(name), states) }
}

function kindOf(live: ListedRow | undefined, rebuilt: ListedRow | undefined) {
  if (!rebuilt) return 'onlyLive'
  if (!live) return 'onlyRebuilt'
  return live.json === rebuilt.json || isSame(parseJson(live.json), parseJson(rebuilt.json)) ? 'same' : 'different'
}

/** Whatever the order in which the fields of an object came. */
function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return Object.is(a, b)
  if (Array.isArray(a) !== Array.isArray(b)) return false
  const [left, right] = [Object.entries(a), new Map(Object.entries(b))]
  return left.length === right.size && left.every(([key, value]) => right.has(key) && isSame(value, right.get(key)))
}

async function* rowsOf(moment: StoreMoment, table: TableSpec): AsyncGenerator<ListedRow, undefined> {
  for (let after: { value: string; key: string } | undefined; ; ) {
    const orderBy = { column: 'key', direction: 'asc' } as const
    const page = await moment.rows.list(table, { where: [], orderBy, after, limit: rowsPerPage })
    yield* page
    const last = page.at(-1)
    if (!last || page.length < rowsPerPage) return undefined
    after = { value: last.key, key: last.key }
  }
}

/** As the stores do: by the bytes of UTF-8, which is by code points. JavaScript's own order is another above U+FFFF. */
function compareKeys(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Halves of a character above U+FFFF come after everything below it. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

function isLevel(live: readonly PartitionState[], rebuilt: readonly PartitionState[]): boolean {
  return live.every(({ checkpoint }, i) => checkpoint.position === rebuilt[i]?.checkpoint.position)
}

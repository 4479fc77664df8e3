import { HoldfastError } from '../../errors.ts'
import { parseJson } from '../../event/parse.ts'
import type { Projection } from '../../projection/projection.ts'
import type { ListedRow, TableSpec } from '../../projection/row-store.ts'
import { checkOptions, whole } from '../../runtime/options.ts'
import type { StoreMoment } from '../../store.ts'
import type { PartitionState } from '../../subscription/subscription-store.ts'
import type { OperatorParts } from '../parts.ts'
import { generationName, generationTable } from '../../rebuild/generation.ts'

export interface DiffOptions {
  /** The version to compare with the live one. Default: the version in this program. */
  readonly version?: number
  /** How many differences to show. Default: 20. */
  readonly limit?: number
}

/** The data of both rows as JSON; undefined if the row does not exist. */
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
  /** The first differences, in order of their keys. */
  readonly differences: readonly RowDifference[]
  /** Whether both versions had applied the same events. If false, some differences only mean that one version is behind. */
  readonly isLevel: boolean
}

const rowsPerPage = 1_000

/**
 * Compares a rebuilt version with the live one, row by row, in one snapshot. Only the data is compared, not which event changed a row last.
 * Needs memory for one page of each.
 */
export async function diffRebuild(parts: OperatorParts, name: string, options: DiffOptions = {}): Promise<RebuildDiff> {
  checkOptions(options, 'diffRebuild', ['version', 'limit'])
  const { consumer } = parts.subscriptionOf(name)
  if (consumer.kind !== 'fold') {
    throw new HoldfastError('OPTION_INVALID', `${name} is not a fold, so Holdfast does not know its rows.`, {
      hint: 'Compare the tables of an SQL projection with your own query.',
    })
  }
  const version = whole(options.version ?? consumer.version, 'version', 1, Number.MAX_SAFE_INTEGER)
  const limit = whole(options.limit ?? 20, 'limit', 0, 10_000)
  return parts.store.snapshot((moment) => compare(moment, consumer, version, limit))
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
      hint: `Rebuild it first: holdfast projections versions ${name}`,
    })
  }
  // No columns: they are derived from the data and can differ between the versions.
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

/** Ignores the order of object fields. */
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

/** Compares by UTF-8 bytes (that is, by code points), as the stores do. JavaScript's string order differs above U+FFFF. */
function compareKeys(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (x !== y) return rank(x) - rank(y)
  }
  return a.length - b.length
}

/** Sorts surrogates (halves of a character above U+FFFF) after all other code units. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}

function isLevel(live: readonly PartitionState[], rebuilt: readonly PartitionState[]): boolean {
  return live.every(({ checkpoint }, i) => checkpoint.position === rebuilt[i]?.checkpoint.position)
}

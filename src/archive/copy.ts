import { HoldfastError } from '../errors.ts'
import { checkOptions, checkStore } from '../runtime/options.ts'
import type { Store } from '../store.ts'
import { type ArchiveItem, archiveKinds, type ArchivePart, itemsOf } from './archive.ts'

export interface CopyOptions {
  readonly from: Store
  /** An empty store. */
  readonly to: Store
  /** Copies even if a process seems to use the store. Later changes are not copied. */
  readonly force?: boolean
  readonly onProgress?: (progress: CopyProgress) => void
}

export type CopyCounts = Readonly<Record<ArchiveItem['kind'], number>>

export interface CopyProgress {
  readonly phase: 'copying' | 'comparing'
  readonly counts: CopyCounts
}

export interface Copied {
  /** The number of items that were copied and compared. */
  readonly counts: CopyCounts
  /** SQL projections: their tables are not copied, so they start again in the other store. */
  readonly left: readonly string[]
}

/**
 * Copies the persistent content of a store into another one, as of one moment: positions, versions, checkpoints, rows, held
 * lanes, letters and the acts on them, deduplication marks, breakers, the audit. After any failure the other store is unchanged.
 * Then it reads both stores again and compares everything. Don't use a copy whose comparison did not finish.
 */
export async function copyStore(options: CopyOptions): Promise<Copied> {
  checkOptions(options, 'copyStore', ['from', 'to', 'force', 'onProgress'])
  const { from, to, force = false, onProgress = () => undefined } = options
  checkStore(from, 'copyStore')
  checkStore(to, 'copyStore')
  if (!to.restore) throw new HoldfastError('OPTION_INVALID', 'The target store does not support restoring a copy.')
  const restore = to.restore.bind(to)
  return from.snapshot(async (moment) => {
    const left = new Set<string>()
    const copying = new Tally('copying', onProgress)
    await restore(copying.parts(copied(moment.archive(), left, force)))
    const comparing = new Tally('comparing', onProgress)
    await to.snapshot((there) => compare(copied(moment.archive(), left, true), there.archive(), comparing))
    if (!force) await refuseGrown(from, copying.position)
    return { counts: comparing.counts, left: [...left].toSorted() }
  })
}

/** An append is visible only by its events. */
async function refuseGrown(from: Store, position: number): Promise<void> {
  const head = await from.log.head()
  if (head <= position) return
  throw new HoldfastError(
    'STORE_IN_USE',
    `Events up to position ${head} were appended during the copy; the copy ends at ${position}.`,
    { hint: 'Delete the copy, stop all processes that append, and copy again.' },
  )
}

/** Without the parts that can't be copied. */
async function* copied(
  parts: AsyncIterable<ArchivePart>,
  left: Set<string>,
  force: boolean,
): AsyncGenerator<ArchivePart> {
  for await (const part of parts) {
    if (part.part === 'subscription') {
      const { name, kind, partitions } = part.subscription
      const owner = partitions.find((partition) => partition.owner !== undefined)?.owner
      if (owner !== undefined && !force) {
        throw new HoldfastError('STORE_IN_USE', `${owner} runs ${name}; its further changes would not be copied.`, {
          hint: `Stop all engines first. If ${owner} is dead, wait until its lease expires, or force the copy.`,
        })
      }
      if (kind === 'sql') left.add(name)
    }
    if (!left.has(subscriptionOf(part) ?? '')) yield part
  }
}

function subscriptionOf(part: ArchivePart): string | undefined {
  if (part.part === 'events' || part.part === 'breakers' || part.part === 'audit') return undefined
  return part.part === 'subscription' ? part.subscription.name : part.subscription
}

async function compare(
  expected: AsyncIterable<ArchivePart>,
  actual: AsyncIterable<ArchivePart>,
  tally: Tally,
): Promise<void> {
  const there = itemsOf(actual)
  for await (const item of itemsOf(expected)) {
    const { value: found } = await there.next()
    if (found?.kind !== item.kind || found.name !== item.name || found.text !== item.text) {
      throw different(item, found as ArchiveItem | undefined)
    }
    tally.add(item.kind)
  }
  const { value: extra } = await there.next()
  if (extra) throw different(undefined, extra as ArchiveItem)
}

function different(expected: ArchiveItem | undefined, found: ArchiveItem | undefined): HoldfastError {
  const show = (one: ArchiveItem | undefined) =>
    one ? `${one.kind} ${one.name}: ${one.text.slice(0, 500)}` : 'nothing'
  return new HoldfastError('COPY_DIFFERS', `The copy has ${show(found)}, where the original has ${show(expected)}.`, {
    hint: 'Do not use the copy. If no other process wrote to it, please report a bug.',
  })
}

class Tally {
  readonly #phase: CopyProgress['phase']
  readonly #onProgress: (progress: CopyProgress) => void
  readonly #counts = Object.fromEntries(archiveKinds.map((kind) => [kind, 0])) as Record<ArchiveItem['kind'], number>
  #untold = 0
  #position = 0

  constructor(phase: CopyProgress['phase'], onProgress: (progress: CopyProgress) => void) {
    this.#phase = phase
    this.#onProgress = onProgress
    this.#tell()
  }

  /** The position of the last event. */
  get position(): number {
    return this.#position
  }

  get counts(): CopyCounts {
    return { ...this.#counts }
  }

  add(kind: ArchiveItem['kind'], count = 1): void {
    this.#counts[kind] += count
    this.#untold += count
    if (this.#untold >= 5_000) this.#tell()
  }

  async *parts(parts: AsyncIterable<ArchivePart>): AsyncGenerator<ArchivePart> {
    for await (const part of parts) {
      yield part
      switch (part.part) {
        case 'subscription':
          this.add('subscription')
          break
        case 'events':
          this.add('event', part.events.length)
          this.#position = part.events.at(-1)?.position ?? this.#position
          break
        case 'rows':
          this.add('row', part.rows.length)
          break
        case 'lanes':
          this.add('lane', part.lanes.length)
          break
        case 'letters':
          this.add('letter', part.letters.length)
          break
        case 'revisions':
          this.add('revision', part.revisions.length)
          break
        case 'incidents':
          this.add('incident', part.incidents.length)
          break
        case 'redrive':
          this.add('redrive')
          break
        case 'redrive-lanes':
          this.add('redriveLane', part.lanes.length)
          break
        case 'inbox':
          this.add('mark', part.marks.length)
          break
        case 'breakers':
          this.add('breaker', part.breakers.length)
          break
        case 'audit':
          this.add('deed', part.entries.length)
          break
        default:
          part satisfies never
      }
    }
  }

  #tell(): void {
    this.#untold = 0
    this.#onProgress({ phase: this.#phase, counts: this.counts })
  }
}

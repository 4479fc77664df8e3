import type { LetterPlace } from '../dead-letter/letter-store.ts'
import { HoldfastError } from '../errors.ts'
import { sha256Hex } from '../event/sha256.ts'
import { count } from '../runtime/count.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import { digestOf, type OperatorParts } from './parts.ts'

export interface PurgeOptions {
  readonly reason: string
  /** Remove letters that were resolved longer ago than this, except those with a revision. Default: `30d`. */
  readonly olderThan?: Duration
  /** The digest that `Operator.purgeable` returned. If the letters have changed since, the purge fails with `PURGE_CHANGED`. */
  readonly expected?: string
}

/** The letters that a purge would remove now. */
export interface Purgeable {
  readonly letters: number
  /** Identifies exactly these letters; `purge` accepts it as `expected`. */
  readonly digest: string
}

export interface Purged {
  readonly letters: number
  /** Held and ended letters that remain. */
  readonly left: number
}

const perPurge = 1_000
const perPage = 10_000

export async function purgeable(
  parts: OperatorParts,
  subscription: string,
  options: Pick<PurgeOptions, 'olderThan'> = {},
): Promise<Purgeable> {
  checkOptions(options, 'purgeable', ['olderThan'])
  await parts.partitionsOf(subscription)
  return look(parts, subscription, endedBefore(parts, options))
}

/** Removes in batches, each with its own audit entry: one transaction for a million letters would block all other writers. */
export async function purge(parts: OperatorParts, subscription: string, options: PurgeOptions): Promise<Purged> {
  checkOptions(options, 'purge', ['reason', 'olderThan', 'expected'])
  const { letters } = parts.store
  const reason = parts.reasonOf(options.reason)
  const expected = digestOf(options.expected, 'operator.purgeable')
  await parts.partitionsOf(subscription)
  // Letters resolved from now on are newer than this, so the set can only shrink.
  const before = endedBefore(parts, options)
  const { letters: found, digest } = await look(parts, subscription, before)
  if (expected !== undefined && expected !== digest) {
    const now = `there ${found === 1 ? 'is' : 'are'} now ${count(found)}`
    throw new HoldfastError(
      'PURGE_CHANGED',
      `The letters to purge from ${subscription} changed after the digest was computed: ${now}. Nothing was done.`,
      { hint: 'Call purgeable again, and purge with the new digest.' },
    )
  }
  let purged = 0
  while (purged < found) {
    const details = { endedBefore: before, lettersBefore: found - purged }
    const deed = parts.deed({ act: 'letters.purge', target: subscription, reason, details })
    const some = await letters.purge(subscription, before, Math.min(perPurge, found - purged), deed)
    if (some === 0) break
    purged += some
    await parts.runtime.timers.yield()
  }
  const { byStatus } = await letters.stats(subscription)
  return { letters: purged, left: Object.values(byStatus).reduce((sum, many) => sum + many, 0) }
}

/** Reads page by page, because there can be millions. Each page is hashed with the digest of the previous pages. */
async function look({ store }: OperatorParts, subscription: string, before: number): Promise<Purgeable> {
  let letters = 0
  let digest = sha256Hex('')
  let after: LetterPlace | undefined
  for (;;) {
    const page = await store.letters.listPurgeable(subscription, before, after, perPage)
    if (page.length > 0)
      digest = sha256Hex([digest, ...page.map((one) => `${one.partition}/${one.position}`)].join('\n'))
    letters += page.length
    after = page.at(-1)
    if (page.length < perPage) return { letters, digest }
  }
}

function endedBefore({ runtime }: OperatorParts, { olderThan = '30d' }: Pick<PurgeOptions, 'olderThan'>): number {
  return Math.floor(runtime.clock.now() - toMs(olderThan, 'olderThan'))
}

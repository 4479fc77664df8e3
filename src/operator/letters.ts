import type { DeadLetter, HeldStatus } from '../dead-letter/letter.ts'
import type { LetterName, LetterQuery } from '../dead-letter/letter-store.ts'
import { HoldfastError } from '../errors.ts'
import { checkOptions, whole } from '../runtime/options.ts'
import type { Store } from '../store.ts'

export function titleOf({ subscription, event }: Pick<DeadLetter, 'subscription' | 'event'>): string {
  return `The letter at position ${event.position} of ${subscription}`
}

export const heldStatuses = ['parked', 'waiting', 'retrying', 'queued'] as const satisfies readonly HeldStatus[]

/**
 * What is listed and exported by default: held letters in order of position. Each status is a query of its own, because there may be a
 * thousand times as many resolved ones.
 */
export async function listHeld(
  { letters }: Pick<Store, 'letters'>,
  query: LetterQuery & { readonly limit: number },
): Promise<readonly DeadLetter[]> {
  if (query.status !== undefined) return letters.list(query)
  const pages = await Promise.all(heldStatuses.map((status) => letters.list({ ...query, status })))
  return pages
    .flat()
    .toSorted((a, b) => a.event.position - b.event.position || a.partition - b.partition)
    .slice(0, query.limit)
}

/** Throws `LETTER_UNKNOWN`, or `OPTION_INVALID` if several partitions have the position. */
export async function findLetter({ letters }: Pick<Store, 'letters'>, name: LetterName): Promise<DeadLetter> {
  checkOptions(name, 'A letter', ['subscription', 'position', 'partition'])
  const { subscription, partition } = name
  if (typeof subscription !== 'string') throw new HoldfastError('OPTION_INVALID', 'The subscription must be a string.')
  const position = whole(name.position, 'position', 1, Number.MAX_SAFE_INTEGER)
  if (partition !== undefined) whole(partition, 'partition', 0, 32_767)
  const within = partition === undefined ? {} : { partition }
  const [letter, other] = await letters.list({ subscription, position, ...within, limit: 2 })
  if (!letter) {
    throw new HoldfastError('LETTER_UNKNOWN', `${subscription} has no letter at position ${position}.`, {
      hint: `Resolved letters are purged after a while. To see all letters: holdfast dlq list ${subscription} --all`,
    })
  }
  if (!other) return letter
  throw new HoldfastError('OPTION_INVALID', `${subscription} has several letters at position ${position}.`, {
    hint: `Give the partition, for example ${letter.partition} or ${other.partition}.`,
  })
}

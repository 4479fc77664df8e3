import type { DeadLetter, LetterStatus } from '../dead-letter/letter.ts'
import type { LetterFilter, LetterName, LetterQuery } from '../dead-letter/letter-store.ts'
import { HoldfastError } from '../errors.ts'
import { failureClasses } from '../failure/failure.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Store } from '../store.ts'
import { whole } from './parts.ts'

const mostLetters = 10_000
const statuses: readonly LetterStatus[] = ['parked', 'waiting', 'retrying', 'queued', 'resolved', 'discarded']

const filterNames = [
  'lane',
  'partition',
  'position',
  'status',
  'type',
  'class',
  'fingerprint',
  'since',
  'until',
  'text',
] as const satisfies readonly (keyof LetterFilter)[]

export function titleOf({ subscription, event }: Pick<DeadLetter, 'subscription' | 'event'>): string {
  return `The letter at position ${event.position} of ${subscription}`
}

/** Throws for a name that is nobody's. */
export async function findLetter({ letters }: Pick<Store, 'letters'>, name: LetterName): Promise<DeadLetter> {
  checkOptions(name, 'A letter', ['subscription', 'position', 'partition'])
  const { subscription, partition } = name
  if (typeof subscription !== 'string') throw new HoldfastError('OPTION_INVALID', 'The subscription is no text.')
  const position = whole(name.position, 'position', 1, Number.MAX_SAFE_INTEGER)
  if (partition !== undefined) whole(partition, 'partition', 0, 32_767)
  const within = partition === undefined ? {} : { partition }
  const [letter, other] = await letters.list({ subscription, position, ...within, limit: 2 })
  if (!letter) {
    throw new HoldfastError('LETTER_UNKNOWN', `${subscription} has no letter at position ${position}.`, {
      hint: 'Check the position; resolved letters are purged after a while.',
    })
  }
  if (!other) return letter
  throw new HoldfastError('OPTION_INVALID', `${subscription} has several letters at position ${position}.`, {
    hint: `Say which partition: ${letter.partition} or ${other.partition}, for two.`,
  })
}

/** A query as the store takes it: what is not said is left out. */
export function letterQuery(query: LetterQuery): LetterQuery {
  checkOptions(query, 'A query of letters', ['subscription', 'after', 'limit', ...filterNames])
  const { subscription, after = 0, limit = 100, ...filter } = query
  const said = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined))
  return {
    subscription,
    after: whole(after, 'after', 0, Number.MAX_SAFE_INTEGER),
    limit: whole(limit, 'limit', 1, mostLetters),
    ...checkFilter(said),
  }
}

/** A misspelled or forgotten condition would select everything, quietly. */
export function checkFilter(filter: LetterFilter): LetterFilter {
  checkOptions(filter, 'A filter of letters', filterNames)
  const { status, class: failureClass } = filter
  if (status !== undefined && !statuses.includes(status)) throw refused('status', status, statuses)
  if (failureClass !== undefined && !failureClasses.includes(failureClass))
    throw refused('class', failureClass, failureClasses)
  for (const name of ['lane', 'type', 'fingerprint', 'text'] as const) {
    const value: unknown = filter[name]
    // The lane of an event that may be about any row is the one without a name.
    const isNamed = value !== '' || name === 'lane'
    if (name in filter && !(typeof value === 'string' && isNamed && value.isWellFormed() && !value.includes('\0')))
      throw refused(name, value, ['a text'])
  }
  for (const name of ['partition', 'position', 'since', 'until'] as const)
    if (name in filter) whole(filter[name], name, 0, Number.MAX_SAFE_INTEGER)
  return filter
}

function refused(name: string, value: unknown, allowed: readonly string[]): HoldfastError {
  const shown = typeof value === 'string' ? JSON.stringify(value.slice(0, 60)) : typeof value
  return new HoldfastError('OPTION_INVALID', `The filter's ${name} is ${shown}.`, {
    hint: `It can be ${allowed.join(', ')}.`,
  })
}

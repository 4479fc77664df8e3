import { HoldfastError } from '../errors.ts'
import { isStorable } from '../event/storable.ts'
import { failureClasses } from '../failure/failure.ts'
import { checkOptions, whole } from '../runtime/options.ts'
import type { LetterStatus } from './letter.ts'
import type { LetterFilter, LetterQuery } from './letter-store.ts'

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

/** A checked query without undefined conditions, as the store expects it. */
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

/** Rejects a misspelled or undefined condition: it would silently select all letters. */
export function checkFilter(filter: LetterFilter): LetterFilter {
  checkOptions(filter, 'A filter of letters', filterNames)
  const { status, class: failureClass } = filter
  if (status !== undefined && !statuses.includes(status)) throw refused('status', status, statuses)
  if (failureClass !== undefined && !failureClasses.includes(failureClass))
    throw refused('class', failureClass, failureClasses)
  for (const name of ['lane', 'type', 'fingerprint', 'text'] as const) {
    const value: unknown = filter[name]
    // Events whose key cannot be read are in the lane with the empty name.
    const isNamed = value !== '' || name === 'lane'
    if (name in filter && !(typeof value === 'string' && isNamed && isStorable(value)))
      throw refused(name, value, ['a non-empty string'])
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

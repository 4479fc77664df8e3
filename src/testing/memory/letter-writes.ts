import { keepAttempts } from '../../dead-letter/attempts.ts'
import type { Attempt, NewLetter } from '../../dead-letter/letter.ts'
import type { Writes } from '../../subscription/commit-writes.ts'
import type { Letter, Partition, Subscribed } from './state.ts'
import { ServerError } from './transaction.ts'

/** A position has one letter, and a held letter that is not in the log has a unique sequence in its lane. */
export function checkInserts(
  { partitions, revisions }: Subscribed,
  { partition, letters }: Partition,
  { queued, inserts, revised }: Writes,
): void {
  if (queued.length + inserts.length + revised.length === 0) return
  const positions = [...queued, ...inserts.map(({ letter }) => letter.event.position)]
  if (positions.some((position) => letters.has(position)) || new Set(positions).size < positions.length)
    throw duplicate('holdfast_letters', 'holdfast_letters_pkey')
  const foreign = inserts.filter(({ letter, end }) => !letter.logged && !end).map(({ letter }) => foreignName(letter))
  if (foreign.length > 0) {
    const known = new Set(partitions.flatMap(({ held }) => [...held.values()].flatMap(foreignNames)))
    if (foreign.some((name) => known.has(name)) || new Set(foreign).size < foreign.length)
      throw duplicate('holdfast_letters', 'holdfast_letters_foreign')
  }
  for (const { position, number } of revised) {
    if (revisions.get(`${position}/${partition}`)?.some((known) => known.number === number))
      throw duplicate('holdfast_revisions', 'holdfast_revisions_pkey')
  }
}

function duplicate(table: string, constraint: string): ServerError {
  return new ServerError('23505', `duplicate key value violates unique constraint "${constraint}"`, table)
}

function foreignName({ lane, sequence, event }: Pick<NewLetter, 'lane' | 'sequence' | 'event'>): string {
  return JSON.stringify([lane, sequence, event.id])
}

function foreignNames(letter: Letter): string[] {
  return letter.logged ? [] : [foreignName(letter)]
}

export function writeLetters(row: Partition, held: readonly NewLetter[], writes: Writes, at: number): void {
  if (writes.queued.length > 0) {
    const queued = new Set(writes.queued)
    // A queued letter has not been tried.
    for (const letter of held)
      if (queued.has(letter.event.position)) putLetter(row, letterOf(row, letter, 'queued', [], at))
  }
  for (const { letter, status, attempts, attemptsTotal, end } of writes.inserts) {
    const made = letterOf(row, letter, status, attemptsOf(attempts), at)
    putLetter(row, { ...made, attemptsTotal, endedAt: end?.at, endedBy: end?.by, endedReason: end?.reason })
  }
  for (const { position, status, attempts, tried, end } of writes.updates) {
    const letter = row.letters.get(position)
    if (!letter) continue
    const all = [...letter.attempts, ...attemptsOf(attempts === null ? null : `[${attempts}]`)]
    putLetter(row, {
      ...letter,
      status: status ?? letter.status,
      attempts: keepAttempts(all),
      attemptsTotal: letter.attemptsTotal + tried,
      failure: all.at(-1)?.failure,
      endedAt: end?.at ?? letter.endedAt,
      endedBy: end?.by ?? letter.endedBy,
      endedReason: end?.reason ?? letter.endedReason,
    })
  }
}

function letterOf(
  { partition }: Partition,
  { lane, sequence, logged, event }: NewLetter,
  status: Letter['status'],
  attempts: readonly Attempt[],
  heldAt: number,
): Letter {
  const body = typeof event.body === 'string' ? event.body : new Uint8Array(event.body)
  return {
    partition,
    lane,
    sequence,
    status,
    logged,
    event: { ...event, body },
    failure: attempts.at(-1)?.failure,
    attempts,
    attemptsTotal: attempts.length,
    heldAt,
    endedAt: undefined,
    endedBy: undefined,
    endedReason: undefined,
  }
}

/** As JSON, like in the other stores: a copy, without what JSON leaves out. */
function attemptsOf(text: string | null): Attempt[] {
  return text === null ? [] : (JSON.parse(text) as Attempt[])
}

export function putLetter({ letters, held }: Partition, letter: Letter): void {
  const { position } = letter.event
  letters.set(position, letter)
  if (letter.endedAt === undefined) held.set(position, letter)
  else held.delete(position)
}

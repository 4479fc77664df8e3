import { keepAttempts } from '../dead-letter/attempts.ts'
import type { Ending, LetterStatus, NewLetter } from '../dead-letter/letter.ts'
import type { Failure } from '../failure/failure.ts'
import type { LetterChange } from './subscription-store.ts'

/** The combined changes of one letter. */
interface Change {
  status?: LetterStatus
  failure?: Failure
  /** JSON. */
  readonly attempts: string[]
  ending?: Partial<Ending>
}

/** A resolved letter needs no reason. */
type End = Partial<Ending> & { readonly at: number }

export interface LetterInsert {
  readonly letter: NewLetter
  readonly status: LetterStatus
  /** It is or was only queued: the log has everything else. */
  readonly isBare: boolean
  readonly failure: Failure | undefined
  readonly attempts: string | null
  readonly attemptsTotal: number
  readonly failedAt: number | null
  readonly end: End | undefined
}

export interface LetterUpdate {
  readonly position: number
  readonly status: LetterStatus | null
  readonly failure: Failure | undefined
  /** To append to the stored ones: JSON objects separated by commas. */
  readonly attempts: string | null
  /** The number of these attempts. */
  readonly tried: number
  readonly end: End | undefined
}

export interface LetterWrites {
  /** The positions of letters that differ in nothing else. */
  readonly queued: readonly number[]
  readonly inserts: readonly LetterInsert[]
  readonly updates: readonly LetterUpdate[]
}

/**
 * Combines the letters of a commit, so that each is written once. The parts of one statement don't see each other's writes: a
 * letter that is held and changed in the same commit, or changed twice, would keep only one change.
 */
export function letterWrites(held: readonly NewLetter[], letters: readonly LetterChange[], at: number): LetterWrites {
  const changes = foldChanges(letters, at)
  const queued: number[] = []
  const inserts: LetterInsert[] = []
  for (const letter of held) {
    const { position } = letter.event
    const change = changes.get(position)
    changes.delete(position)
    const isBare = letter.logged && letter.status === 'queued'
    if (isBare && !change) queued.push(position)
    else inserts.push(toInsert(letter, isBare, change, at))
  }
  return { queued, inserts, updates: Array.from(changes, ([position, change]) => toUpdate(position, change, at)) }
}

function foldChanges(letters: readonly LetterChange[], at: number): Map<number, Change> {
  const changes = new Map<number, Change>()
  for (const letter of letters) {
    const change = changes.get(letter.position) ?? { attempts: [] }
    changes.set(letter.position, change)
    switch (letter.change) {
      case 'resolved':
        change.status = 'resolved'
        change.ending = { by: letter.by, ...(letter.reason !== undefined && { reason: letter.reason }) }
        break
      case 'discarded':
        change.status = 'discarded'
        change.ending = letter.ending
        break
      case 'failed':
        change.status = letter.status
        change.failure = letter.failure
        change.attempts.push(JSON.stringify({ at, failure: letter.failure }))
        break
      case 'status':
        change.status = letter.status
        break
      default:
        letter satisfies never
    }
  }
  return changes
}

function toInsert(letter: NewLetter, isBare: boolean, change: Change | undefined, at: number): LetterInsert {
  // A queued letter has not been tried.
  const own = letter.failure && !isBare ? [JSON.stringify({ at, failure: letter.failure })] : []
  const attempts = [...own, ...(change?.attempts ?? [])]
  // A letter that was created as ended has an end, too.
  const ending = change?.ending ?? endingOf(letter)
  return {
    letter,
    status: change?.status ?? letter.status,
    isBare,
    failure: change?.failure ?? (isBare ? undefined : letter.failure),
    attempts: attempts.length > 0 ? `[${keepAttempts(attempts).join(',')}]` : null,
    attemptsTotal: attempts.length,
    failedAt: attempts.length > 0 ? at : null,
    end: ending && { ...ending, at },
  }
}

function endingOf({ status, ending }: NewLetter): Partial<Ending> | undefined {
  if (status === 'resolved') return { by: 'engine' }
  return status === 'discarded' ? { ...ending } : undefined
}

function toUpdate(position: number, change: Change, at: number): LetterUpdate {
  return {
    position,
    status: change.status ?? null,
    failure: change.failure,
    attempts: change.attempts.length > 0 ? change.attempts.join(',') : null,
    tried: change.attempts.length,
    end: change.ending && { ...change.ending, at },
  }
}

import type { LetterQuery } from '../dead-letter/letter-store.ts'

export interface ExportOptions {
  /** Which letters; all of them, unless `limit` says otherwise. */
  readonly query: LetterQuery
  /** Payloads leave the store: it is written down who wanted that, and why. */
  readonly reason: string
  /** Also the events of the same keys that came before, so that an import elsewhere comes to the same failure. */
  readonly history?: boolean
}

export interface ImportOptions {
  readonly reason: string
}

/** What an import did. Revisions are never taken over: what came is imported as it came. */
export interface Imported {
  readonly events: number
  /** How many of them were letters, and how many of those had a revision, which stays in the file. */
  readonly letters: number
  readonly revised: number
  /** What can't be in a log: bytes that are no text. */
  readonly skipped: readonly { readonly line: number; readonly eventId: string; readonly why: string }[]
}

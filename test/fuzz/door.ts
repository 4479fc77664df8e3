import type { Store } from 'holdfast'
import type { Chance } from './chance.ts'

/** What became of what was given: it is there as it came, it was refused and left no trace, or it is held to the byte. */
export type Outcome = 'accepted' | 'refused' | 'held'

/** A place where something comes in from outside. */
export interface Door {
  readonly name: string
  /** All of these must be seen, or the cases prove nothing. */
  readonly outcomes: readonly Outcome[]
  /** After so many cases it is closed, looked over, and opened anew. */
  readonly cases: number
  open(ground: Ground): Promise<OpenDoor>
}

export interface OpenDoor extends AsyncDisposable {
  /** One case. Throws a `Finding`. */
  give(chance: Chance): Promise<Outcome>
  /** What can only be said of all of them together. */
  check?(): Promise<void>
}

/** What a door is built on. */
export interface Ground extends AsyncDisposable {
  readonly stores: readonly StoreKind[]
  /** An empty one. */
  open(kind: StoreKind): Promise<Store>
  /** Where an empty one can be, for who opens it. */
  choose(kind: StoreKind): { readonly sqlite: string } | { readonly postgres: { connection: string; schema: string } }
}

export type StoreKind = 'sqlite' | 'postgres'

/** Something that must not be. */
export class Finding extends Error {
  override readonly name = 'Finding'
}

export function expectThat(isSo: boolean, what: string, about?: unknown): asserts isSo {
  if (!isSo) throw new Finding(about === undefined ? what : `${what}: ${shown(about)}`)
}

const longest = 2_000

/** As it may be told, whatever it is. */
export function shown(value: unknown): string {
  try {
    // Undefined, a function or a symbol has no text.
    const text: string | undefined = value instanceof Error ? (value.stack ?? value.message) : JSON.stringify(value)
    return (text ?? typeof value).slice(0, longest)
  } catch {
    return `a ${typeof value} that can't be shown`
  }
}

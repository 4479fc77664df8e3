import type { Admin } from './admin.ts'
import type { Fleet } from './fleet.ts'
import type { Ground } from './ground.ts'
import type { Tally } from './tally.ts'
import type { Writers } from './writers.ts'

export interface Random {
  below(limit: number): number
}

/** Everything that a nemesis can lay hands on. */
export interface Scene {
  readonly ground: Ground
  readonly database: string
  readonly admin: Admin
  readonly fleet: Fleet
  readonly writers: Writers
  readonly random: Random
  readonly tally: Tally
}

/** Does its harm and takes it back. What it did counts in the tally only if it really happened. */
export interface Nemesis {
  readonly name: string
  /** How often it comes, compared with the others. */
  readonly weight: number
  /** Why it can't be had here, if it can't. */
  readonly missing?: (ground: Ground) => string | undefined
  readonly strike: (scene: Scene) => Promise<void>
}

export function pick<T>(random: Random, list: readonly T[]): T {
  return list[random.below(list.length)] as T
}

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** A mistake that somebody might make, as a change of one file. */
export interface Bug {
  readonly name: string
  /** What a user would lose by it, in one sentence. */
  readonly tells: string
  readonly file: string
  /** Occurs in the file exactly once. Code that moved on takes the bug with it, and somebody has to look. */
  readonly find: string
  readonly replace: string
  /** The test files that should find it. */
  readonly suite: readonly string[]
}

/** Why a bug can't be planted in this text; undefined if it can. */
export function misfit({ name, file, find, replace }: Bug, text: string): string | undefined {
  const times = text.split(find).length - 1
  if (times !== 1) return `${name}: what it looks for is in ${file} ${times} times, and should be once`
  return find === replace ? `${name}: it changes nothing` : undefined
}

/** Plants it in a copy of the project. Gives what takes it out again. */
export async function plant(bug: Bug, root: string): Promise<() => Promise<void>> {
  const path = join(root, bug.file)
  const sound = await readFile(path, 'utf8')
  const why = misfit(bug, sound)
  if (why !== undefined) throw new Error(why)
  const [before = '', after = ''] = sound.split(bug.find)
  await writeFile(path, before + bug.replace + after)
  return () => writeFile(path, sound)
}

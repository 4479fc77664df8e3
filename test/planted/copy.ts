import { cp, mkdtemp, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Copy extends AsyncDisposable {
  readonly folder: string
}

const leftOut = ['.git', 'node_modules', 'dist', 'data', 'coverage']

/** A copy of the project that may be spoiled. What is installed is shared with it. */
export async function copyProject(): Promise<Copy> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'holdfast-planted-')))
  await cp(root, folder, { recursive: true, filter: (path) => !leftOut.includes(basename(path)) })
  await symlink(await realpath(join(root, 'node_modules')), join(folder, 'node_modules'))
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

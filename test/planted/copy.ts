import { rmSync } from 'node:fs'
import { cp, mkdtemp, realpath, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

export interface Copy extends Disposable {
  readonly folder: string
}

const leftOut = ['.git', 'node_modules', 'dist', 'data', 'coverage']

/** A copy of the project that may be spoiled. What is installed is shared with it. */
export async function copyProject(): Promise<Copy> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'holdfast-planted-')))
  await cp(root, folder, { recursive: true, filter: (path) => !leftOut.includes(basename(path)) })
  await symlink(await realpath(join(root, 'node_modules')), join(folder, 'node_modules'))
  // It would mend what is installed, which is not the copy's own.
  await writeFile(join(folder, 'scripts/ready.mjs'), '')
  const remove = () => rmSync(folder, { recursive: true, force: true })
  // Also when somebody has lost patience.
  process.once('exit', remove)
  return {
    folder,
    [Symbol.dispose]: () => {
      process.off('exit', remove)
      remove()
    },
  }
}

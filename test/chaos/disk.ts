import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, statfs } from 'node:fs/promises'
import { type Account, run } from '../postgres/binaries.ts'

/** A file system of its own, in memory, that can be full on demand. */
export interface Disk extends AsyncDisposable {
  readonly folder: string
  /** Nothing more fits in. */
  fill(): Promise<void>
  /** There is room again. */
  empty(): Promise<void>
}

// Memory is taken for what is in it, not for what would fit in.
const room = '4g'
const tries = 50

/** It goes with this process, even if that is killed, and as soon as nobody uses it any more. */
const guardScript = 'read -r _; umount -l "$1"; rmdir "$1"'

export async function mountDisk(account: Account): Promise<Disk | { readonly missing: string }> {
  if (process.getuid?.() !== 0) return { missing: 'only root can mount a file system' }
  const folder = await mkdtemp('/tmp/holdfast-disk-')
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${room}`, 'tmpfs', folder])
  } catch (error) {
    return { missing: `no file system can be mounted: ${String(error)}` }
  }
  const guard = spawn('sh', ['-c', guardScript, 'guard', folder], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  const gone = once(guard, 'exit')
  guard.unref()
  if (account.uid !== undefined && account.gid !== undefined) await chown(folder, account.uid, account.gid)
  return {
    folder,
    fill: () => shrink(folder),
    empty: () => resize(folder, room),
    [Symbol.asyncDispose]: async () => {
      guard.ref()
      guard.stdin.end()
      await gone
    },
  }
}

async function shrink(folder: string): Promise<void> {
  for (let i = 1; ; i++) {
    const { blocks, bfree, bsize } = await statfs(folder)
    try {
      return await resize(folder, `${Math.ceil(((blocks - bfree) * bsize) / 1024)}k`)
    } catch (error) {
      // It has grown in the meantime.
      if (i === tries) throw error
    }
  }
}

async function resize(folder: string, size: string): Promise<void> {
  await run('mount', ['-o', `remount,size=${size}`, folder])
}

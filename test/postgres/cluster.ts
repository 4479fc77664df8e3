import { createHash, createHmac, pbkdf2Sync, randomBytes, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, mkdir, mkdtemp, readFile, statfs, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Account, run } from './binaries.ts'

// The data of two servers with all the WAL that they keep by default, and as much again for everybody else.
const roomInMemory = 6 * 2 ** 30

export interface FolderOptions {
  readonly folder?: string | undefined
  readonly inMemory?: boolean | undefined
}

/** A given folder, or a temporary one, that belongs to the account. */
export async function makeFolder(options: FolderOptions, { uid, gid }: Account): Promise<string> {
  const folder = options.folder === undefined ? await makeTemporary(options, uid) : resolve(options.folder)
  await mkdir(folder, { recursive: true })
  if (uid !== undefined && gid !== undefined) await chown(folder, uid, gid)
  return folder
}

async function makeTemporary({ inMemory }: FolderOptions, uid: number | undefined): Promise<string> {
  // The account that stands in for root has to get there, and a TMPDIR of root's may be closed to it.
  const onDisk = uid === undefined ? tmpdir() : '/tmp'
  const parent = inMemory && (await freeBytes('/dev/shm')) > roomInMemory ? '/dev/shm' : onDisk
  return mkdtemp(join(parent, 'holdfast-postgres-'))
}

async function freeBytes(folder: string): Promise<number> {
  const room = await statfs(folder).catch(() => undefined)
  return room ? room.bavail * room.bsize : 0
}

/**
 * Makes a cluster unless there is one already, and returns the superuser's password. There is one, because everybody on
 * the machine can reach the port.
 */
export async function makeCluster(bin: string, folder: string, account: Account): Promise<string> {
  const passwordFile = join(folder, 'password')
  if (existsSync(join(folder, 'data', 'PG_VERSION'))) return readFile(passwordFile, 'utf8')
  const password = randomUUID()
  const verifierFile = join(folder, 'verifier')
  for (const [file, text] of Object.entries({ [passwordFile]: password, [verifierFile]: verifierOf(password) })) {
    await writeFile(file, text, { mode: 0o600 })
    if (account.uid !== undefined && account.gid !== undefined) await chown(file, account.uid, account.gid)
  }
  const args = [
    `--pgdata=${join(folder, 'data')}`,
    '--username=postgres',
    `--pwfile=${verifierFile}`,
    '--auth-local=trust',
    '--auth-host=scram-sha-256',
    '--no-sync',
    // Sorts like a language and not like bytes, as most servers do: code that leans on byte order shall fail here.
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=icu',
    '--icu-locale=en-US',
  ]
  await run(join(bin, 'initdb'), args, { ...account, cwd: folder })
  return password
}

/**
 * What PostgreSQL keeps of a password, made by one round of hashing instead of 4,096. Those slow down the guessing of weak passwords; this one is
 * random, and they were a third of the time of a connection, of which tests open thousands.
 */
function verifierOf(password: string): string {
  const rounds = 1
  const salt = randomBytes(16)
  const salted = pbkdf2Sync(password, salt, rounds, 32, 'sha256')
  const keyed = (key: string) => createHmac('sha256', salted).update(key).digest()
  const stored = createHash('sha256').update(keyed('Client Key')).digest('base64')
  return `SCRAM-SHA-256$${rounds}:${salt.toString('base64')}$${stored}:${keyed('Server Key').toString('base64')}`
}

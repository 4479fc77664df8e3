import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { accountForServers, canRun, copyForAll, nativeFolder, run, type Version } from './binaries.ts'
import { makeCluster, makeFolder } from './cluster.ts'
import { createDatabase } from './create-database.ts'
import { startGuard } from './guard.ts'
import { freePort } from './port.ts'

/** `fast` ends every session, `immediate` lets the next start recover, `kill` takes all its processes with -9. */
export type StopMode = 'fast' | 'immediate' | 'kill'

export interface ServerOptions {
  readonly version?: Version
  readonly port?: number
  /** Kept at the end, and a cluster that is in it already is used as it is. Without it, a temporary one. */
  readonly folder?: string
  /** The temporary folder is in memory, if the machine has room: many times faster, and no measure of anything. */
  readonly inMemory?: boolean
  /** Where nothing is said PostgreSQL's own defaults hold, fsync among them; only max_connections is 200. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface Server extends AsyncDisposable {
  /** Of the database `postgres`, as superuser. */
  readonly url: string
  /** Such as `18.4`. */
  readonly version: string
  readonly port: number
  /** Here are the data, the log and the unix socket. */
  readonly folder: string
  /** Of the postmaster, and undefined while it is stopped. */
  readonly pid: number | undefined
  start(): Promise<void>
  stop(mode?: StopMode): Promise<void>
  restart(mode?: StopMode): Promise<void>
  /** An empty database; it goes when the server goes. */
  createDatabase(name?: string): Promise<string>
}

const patienceMs = 60_000

/** A PostgreSQL of its own, at 127.0.0.1, that ends with this process at the latest. */
export async function startServer(options: ServerOptions = {}): Promise<Server> {
  const native = nativeFolder(options.version ?? 'newest')
  const account = await accountForServers()
  const isReachable = canRun(native, account)
  // What lies in memory can often not be executed.
  const folder = await makeFolder({ ...options, inMemory: options.inMemory && isReachable }, account)
  const data = join(folder, 'data')
  const bin = join(isReachable ? native : await copyForAll(native, folder), 'bin')
  const dismissGuard = await startGuard({
    pgCtl: join(bin, 'pg_ctl'),
    data,
    remove: options.folder === undefined ? folder : undefined,
    account,
  })
  const port = options.port ?? (await freePort())
  const settings = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: folder,
    max_connections: '200',
    ...options.settings,
  }
  const args = ['-D', data, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  let postmaster: ChildProcess | undefined

  async function start(): Promise<void> {
    if (postmaster) return
    const log = await open(join(folder, 'log'), 'a')
    const child = spawn(join(bin, 'postgres'), args, {
      ...account,
      cwd: folder,
      stdio: ['ignore', log.fd, log.fd],
      detached: true,
    })
    postmaster = child
    child.once('exit', () => {
      postmaster = undefined
    })
    await once(child, 'spawn')
    await log.close()
    await untilReady(child, folder)
    // Whoever forgets to stop it can still come to an end: the guard stops it then.
    child.unref()
  }

  async function stop(mode: StopMode = 'fast'): Promise<void> {
    const child = postmaster
    if (!child?.pid) return
    const exited = once(child, 'exit')
    child.ref()
    if (mode === 'kill') await killWithChildren(child.pid)
    else process.kill(child.pid, mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
    await exited
  }

  async function dispose(): Promise<void> {
    await stop('immediate')
    if (options.folder === undefined) await rm(folder, { recursive: true, force: true })
    dismissGuard()
  }

  try {
    const password = await makeCluster(bin, folder, account)
    const { stdout } = await run(join(bin, 'postgres'), ['--version'], { ...account, cwd: folder })
    const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
    await start()
    return {
      url,
      version: /[\d.]+/.exec(stdout)?.[0] ?? stdout,
      port,
      folder,
      get pid() {
        return postmaster?.pid
      },
      start,
      stop,
      restart: async (mode) => {
        await stop(mode)
        await start()
      },
      createDatabase: async (name) => (await createDatabase({ url }, name)).url,
      [Symbol.asyncDispose]: dispose,
    }
  } catch (error) {
    await dispose()
    throw error
  }
}

async function untilReady(child: ChildProcess, folder: string): Promise<void> {
  const deadline = performance.now() + patienceMs
  // The postmaster writes into its pid file how far it is; a file of one that was killed may still lie there.
  while ((await readyPid(folder)) !== child.pid) {
    const gone = child.exitCode !== null || child.signalCode !== null
    if (gone || performance.now() > deadline) {
      child.kill('SIGQUIT')
      const log = await readFile(join(folder, 'log'), 'utf8')
      throw new Error(
        `PostgreSQL did not start; its log ends with:\n${log.trimEnd().split('\n').slice(-12).join('\n')}`,
      )
    }
    await setTimeout(10)
  }
}

async function readyPid(folder: string): Promise<number | undefined> {
  const text = await readFile(join(folder, 'data', 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  return lines[7]?.trim() === 'ready' ? Number(lines[0]) : undefined
}

/** Without its children a killed postmaster would leave the shared memory taken, and the next one would not start. */
async function killWithChildren(pid: number): Promise<void> {
  // Standing still it has no more children than those we find.
  process.kill(pid, 'SIGSTOP')
  const { stdout } = await run('ps', ['-A', '-o', 'ppid=,pid='])
  const children = stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([parent, child]) => (parent === pid && child !== undefined ? [child] : []))
  for (const one of [pid, ...children]) {
    try {
      process.kill(one, 'SIGKILL')
    } catch {
      // It ended by itself.
    }
  }
}

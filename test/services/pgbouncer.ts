import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { accountForServers } from '../postgres/binaries.ts'
import { makeFolder } from '../postgres/cluster.ts'
import { freePort } from '../postgres/port.ts'

export type PoolMode = 'session' | 'transaction' | 'statement'

export interface PgBouncer extends AsyncDisposable {
  /** Of the same database, through the pooler. */
  readonly url: string
}

const patienceMs = 20_000

/** A PgBouncer in front of a database; `settings` is the text of its `[pgbouncer]` section beside what is needed to start it. */
export async function startPgBouncer(
  command: string,
  database: string,
  settings: Readonly<Record<string, string>>,
): Promise<PgBouncer> {
  const account = await accountForServers()
  const folder = await makeFolder({}, account)
  const port = await freePort()
  const target = new URL(database)
  const name = target.pathname.slice(1)
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'plain',
    auth_file: join(folder, 'users.txt'),
    ...settings,
  }
  const section = Object.entries(all).map(([key, value]) => `${key} = ${value}\n`)
  const password = decodeURIComponent(target.password)
  const files = {
    'users.txt': `"${target.username}" "${password}"\n`,
    'pgbouncer.ini': `[databases]\n${name} = host=${target.hostname} port=${target.port} dbname=${name}\n[pgbouncer]\n${section.join('')}`,
  }
  for (const [file, text] of Object.entries(files)) {
    await writeFile(join(folder, file), text, { mode: 0o600 })
    if (account.uid !== undefined && account.gid !== undefined)
      await chown(join(folder, file), account.uid, account.gid)
  }
  const child = spawn(command, [join(folder, 'pgbouncer.ini')], {
    ...account,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (log += text))
  const exited = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGKILL')
    await exited
    await rm(folder, { recursive: true, force: true })
  }
  const url = new URL(database)
  url.port = String(port)
  try {
    await untilReady(url.href, () => child.exitCode !== null)
  } catch (cause) {
    await stop()
    throw new Error(`PgBouncer did not start:\n${log}`, { cause })
  }
  return { url: url.href, [Symbol.asyncDispose]: stop }
}

async function untilReady(url: string, isGone: () => boolean): Promise<void> {
  const until = performance.now() + patienceMs
  for (;;) {
    const client = new Client({ connectionString: url })
    client.on('error', () => undefined)
    try {
      await client.connect()
      await client.query('SELECT 1')
      return
    } catch (error) {
      if (isGone() || performance.now() > until) throw error
      await setTimeout(20)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
}

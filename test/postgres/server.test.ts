import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { describe, expect, it, vi } from 'vitest'
import { accountForServers, canRun, canStartServers, copyForAll, run } from './binaries.ts'
import { startServer } from './server.ts'

const asRoot = process.getuid?.() === 0

describe.runIf(canStartServers()).each(['newest', 'oldest'] as const)('a private server, %s', (version) => {
  it('keeps its port and what was committed, however it is stopped, and whatever it was doing', async () => {
    await using server = await startServer({ version })
    const url = await server.createDatabase('kept')
    await query(url, 'CREATE TABLE numbers (n int)')
    for (const mode of ['fast', 'immediate', 'kill'] as const) {
      const before = server.pid
      await query(url, 'INSERT INTO numbers VALUES (1)')
      const busy = query(url, 'SELECT 1 FROM generate_series(1, 1e12)').catch((error: Error) => error)
      await vi.waitFor(async () =>
        expect(await query(url, `SELECT FROM pg_stat_activity WHERE query LIKE '%1e12%'`)).toHaveLength(2),
      )
      await server.stop(mode)
      expect(await busy).toBeInstanceOf(Error)
      expect(server.pid).toBeUndefined()
      await expect(query(url, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
      await server.start()
      expect(server.pid).not.toBe(before)
    }
    expect(await query(url, 'SELECT count(*)::int AS count FROM numbers')).toEqual([{ count: 3 }])
  })
})

describe.runIf(canStartServers())('a private server', () => {
  it('has the defaults of PostgreSQL but for its connections, takes settings, and leaves nothing behind', async () => {
    const server = await startServer({ settings: { synchronous_commit: 'off' } })
    const { pid, folder } = server
    expect(server.version).toMatch(/^18\./)
    const wanted = {
      fsync: 'on',
      full_page_writes: 'on',
      max_connections: '200',
      synchronous_commit: 'off',
      listen_addresses: '127.0.0.1',
    }
    const columns = Object.keys(wanted).map((name) => `current_setting('${name}') AS ${name}`)
    expect(await query(server.url, `SELECT ${columns.join()}`)).toEqual([wanted])

    expect(await userOf(pid)).toBe(asRoot ? 'postgres' : userInfo().username)
    const intruder = new URL(server.url)
    intruder.password = 'wrong'
    await expect(query(intruder.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })

    await server[Symbol.asyncDispose]()
    expect(existsSync(folder)).toBe(false)
    expect(await userOf(pid)).toBeUndefined()
  })

  it('comes back with its data in a folder that was given, or says why not', async () => {
    const folder = await mkdtemp(join(asRoot ? '/tmp' : tmpdir(), 'holdfast-kept-'))
    try {
      await using first = await startServer({ folder })
      await query(first.url, 'CREATE TABLE kept (n int)')
      await first.stop()
      const misspelt = startServer({ folder, settings: { max_connections: 'many' } })
      await expect(misspelt).rejects.toThrow(/did not start.*max_connections/s)
      await using second = await startServer({ folder })
      expect(await query(second.url, 'SELECT * FROM kept')).toEqual([])
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it.runIf(asRoot)('is copied from where its account can not read it', async () => {
    const closed = await mkdtemp(join(tmpdir(), 'holdfast-closed-'))
    const open = await mkdtemp('/tmp/holdfast-open-')
    try {
      await mkdir(join(closed, 'bin'))
      await writeFile(join(closed, 'bin', 'initdb.1'), '#!/bin/sh', { mode: 0o700 })
      await symlink('initdb.1', join(closed, 'bin', 'initdb'))
      await chmod(open, 0o755)
      const account = await accountForServers()
      expect(canRun(closed, account)).toBe(false)
      expect(canRun(await copyForAll(closed, open), account)).toBe(true)
    } finally {
      await rm(closed, { recursive: true })
      await rm(open, { recursive: true })
    }
  })
})

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

/** Of a process that is there. */
async function userOf(pid: number | undefined): Promise<string | undefined> {
  const { stdout } = await run('ps', ['-o', 'user=', '-p', String(pid)]).catch(() => ({ stdout: '' }))
  return stdout.trim() || undefined
}

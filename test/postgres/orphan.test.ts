import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { canStartServers, run } from './binaries.ts'

const serverFile = new URL('server.ts', import.meta.url).href

describe.runIf(canStartServers())('no server outlives its process', { concurrent: true }, () => {
  it('a process that is killed with -9 takes its server with it', async () => {
    const process = startElsewhere('{ inMemory: true }', 'setInterval(() => undefined, 1000)')
    const [folder] = (await once(process, 'message')) as [string]
    expect(await processesOf(folder)).not.toEqual([])
    process.kill('SIGKILL')
    await untilNoProcessOf(folder)
    expect(existsSync(folder)).toBe(false)
  })

  it('a process that forgets its server can end, and takes it along', async () => {
    const process = startElsewhere('{ inMemory: true }', 'process.disconnect()')
    const [folder] = (await once(process, 'message')) as [string]
    await once(process, 'exit')
    await untilNoProcessOf(folder)
    expect(existsSync(folder)).toBe(false)
  })

  it.each([
    ['its guard', 'guard'],
    ['its cluster', 'initdb'],
    ['the server itself', 'listen_addresses'],
  ])('a process that is killed while it starts %s leaves nothing running', async (_, sign) => {
    const folder = await mkdtemp(join(globalThis.process.getuid?.() === 0 ? '/tmp' : tmpdir(), 'holdfast-orphan-'))
    const process = startElsewhere(JSON.stringify({ folder }), 'setInterval(() => undefined, 1000)')
    const hasBegun = async () => (await processesOf(folder)).some((args) => args.includes(sign))
    while (!(await hasBegun())) expect(process.exitCode).toBeNull()
    process.kill('SIGKILL')
    await untilNoProcessOf(folder)
    await rm(folder, { recursive: true })
  })
})

/** Another process that starts a server, tells its folder, and goes on with `then`. */
function startElsewhere(options: string, then: string): ChildProcess {
  const code = `
    import { startServer } from ${JSON.stringify(serverFile)}
    const { folder } = await startServer(${options})
    process.send(folder)
    ${then}`
  return spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
}

/** The server, its guard, and whoever makes its cluster: all of them are told the folder. */
async function processesOf(folder: string): Promise<string[]> {
  const { stdout } = await run('ps', ['-A', '-ww', '-o', 'args='])
  // The process that starts it was told, too, and is not meant.
  return stdout.split('\n').filter((line) => line.includes(folder) && !line.includes('--eval'))
}

async function untilNoProcessOf(folder: string): Promise<void> {
  await vi.waitFor(async () => expect(await processesOf(folder)).toEqual([]), { timeout: 15_000 })
}

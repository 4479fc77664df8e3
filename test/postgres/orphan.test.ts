import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { canStartServers, run } from './binaries.ts'

const serverFile = new URL('server.ts', import.meta.url).href

describe.runIf(canStartServers())('no server outlives its process', { concurrent: true }, () => {
  it('a process that is killed with -9 takes its server with it', async () => {
    const process = startElsewhere('{}', 'setInterval(() => undefined, 1000)')
    const [folder] = (await once(process, 'message')) as [string]
    expect(await processesOf(folder)).not.toEqual([])
    process.kill('SIGKILL')
    await untilNoProcessOf(folder)
    expect(existsSync(folder)).toBe(false)
  })

  it('a process that forgets its server can end, and takes it along', async () => {
    const process = startElsewhere('{}', 'process.disconnect()')
    const [folder] = (await once(process, 'message')) as [string]
    await once(process, 'exit')
    await untilNoProcessOf(folder)
    expect(existsSync(folder)).toBe(false)
  })

  it('a process that dies while its server starts leaves none', { timeout: 60_000 }, async () => {
    const counts = { whileStarting: 0, withServer: 0 }
    const killAfter = async (delayMs: number) => {
      const folder = await mkdtemp(join(globalThis.process.getuid?.() === 0 ? '/tmp' : tmpdir(), 'holdfast-orphan-'))
      const process = startElsewhere(JSON.stringify({ folder }), 'setInterval(() => undefined, 1000)')
      let isReady = false
      process.on('message', () => {
        isReady = true
      })
      await vi.waitFor(async () => expect(await processesOf(folder)).not.toEqual([process.pid]), 10_000)
      await setTimeout(delayMs)
      process.kill('SIGKILL')
      counts[isReady ? 'withServer' : 'whileStarting']++
      await untilNoProcessOf(folder)
      await rm(folder, { recursive: true })
    }
    await Promise.all([0, 400, 800].map(killAfter))
    expect(counts.whileStarting).toBeGreaterThan(0)
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

/** Of the server, of its guard, and of whoever makes its cluster: all of them are told the folder. */
async function processesOf(folder: string): Promise<number[]> {
  const { stdout } = await run('ps', ['-A', '-ww', '-o', 'pid=,args='])
  const lines = stdout.split('\n').filter((line) => line.includes(folder))
  return lines.map((line) => Number.parseInt(line, 10))
}

async function untilNoProcessOf(folder: string): Promise<void> {
  await vi.waitFor(async () => expect(await processesOf(folder)).toEqual([]), { timeout: 15_000 })
}

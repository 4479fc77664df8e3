import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, type TestContext, vi } from 'vitest'
import { canStartServers, run } from './binaries.ts'

const serverFile = new URL('server.ts', import.meta.url).href

describe.runIf(canStartServers())('no server outlives its process', { concurrent: true, timeout: 60_000 }, () => {
  it('a process that is killed with -9 takes its server with it', async ({ onTestFinished }) => {
    const process = startElsewhere(onTestFinished, '{ inMemory: true }', 'setInterval(() => undefined, 1000)')
    const [folder] = (await once(process, 'message')) as [string]
    expect(await processesOf(folder)).not.toEqual([])
    process.kill('SIGKILL')
    await untilNoProcessOf(folder)
    expect(existsSync(folder)).toBe(false)
  })

  it('a process that forgets its server can end, and takes it along', async ({ onTestFinished }) => {
    const process = startElsewhere(onTestFinished, '{ inMemory: true }', 'process.disconnect()')
    const [folder] = (await once(process, 'message')) as [string]
    await once(process, 'exit')
    await untilNoProcessOf(folder)
    expect(existsSync(folder)).toBe(false)
  })

  it.for([
    ['its guard', 'guard'],
    ['its cluster', 'initdb'],
    ['the server itself', 'listen_addresses'],
  ] as const)(
    'a process that is killed while it starts %s leaves nothing running',
    async ([, sign], { onTestFinished }) => {
      const folder = await mkdtemp(join(globalThis.process.getuid?.() === 0 ? '/tmp' : tmpdir(), 'holdfast-orphan-'))
      const process = startElsewhere(onTestFinished, JSON.stringify({ folder }), 'setInterval(() => undefined, 1000)')
      const hasBegun = async () => (await processesOf(folder)).some((args) => args.includes(sign))
      while (!(await hasBegun())) expect(process.exitCode).toBeNull()
      process.kill('SIGKILL')
      await untilNoProcessOf(folder)
      await rm(folder, { recursive: true })
    },
  )
})

/** Another process that starts a server, tells its folder, and goes on with `then`. */
function startElsewhere(atEnd: TestContext['onTestFinished'], options: string, then: string): ChildProcess {
  const code = `
    import { startServer } from ${JSON.stringify(serverFile)}
    const { folder } = await startServer(${options})
    process.send(folder)
    ${then}`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  // One that outlives a failed test would hold the output of the run open, which then never ends.
  atEnd(() => void child.kill('SIGKILL'))
  return child
}

/** The server, its guard, and whoever makes its cluster: all of them are told the folder. */
async function processesOf(folder: string): Promise<string[]> {
  const { stdout } = await run('ps', ['-A', '-ww', '-o', 'args='])
  // The process that starts it was told, too, and is not meant.
  return stdout.split('\n').filter((line) => line.includes(folder) && !line.includes('--eval'))
}

async function untilNoProcessOf(folder: string): Promise<void> {
  await vi.waitFor(async () => expect(await processesOf(folder)).toEqual([]), { timeout: 30_000 })
}

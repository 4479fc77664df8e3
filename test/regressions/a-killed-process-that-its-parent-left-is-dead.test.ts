import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { claimFrom } from './claim-from.ts'

/** A process, and its parent, which never asks how it ended. */
async function abandoned() {
  const parent = spawn('sh', ['-c', 'sleep 60 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] })
  const pid = Number(await new Promise<Buffer>((resolve) => parent.stdout.once('data', resolve)))
  const stat = () => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  return { pid, stat, [Symbol.dispose]: () => void parent.kill('SIGKILL') }
}

describe.runIf(process.platform === 'linux')('on SQLite, a partition is taken over at once', () => {
  it('when its process was killed, though its parent has not asked how it ended', async () => {
    using one = await abandoned()
    const ticks = one.stat()[19]
    expect(await claimFrom({ pid: one.pid, ticks })).toBe('owned')
    process.kill(one.pid, 'SIGKILL')
    while (one.stat()[0] !== 'Z') await setImmediate()
    // The number is still there for everybody who asks.
    expect(process.kill(one.pid, 0)).toBe(true)
    await expect.poll(() => claimFrom({ pid: one.pid, ticks })).toBe('claimed')
  })

  it('when another process has its number by now', async () => {
    using one = await abandoned()
    expect(await claimFrom({ pid: one.pid, ticks: '1' })).toBe('claimed')
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it, vi } from 'vitest'

const childFile = new URL('child.ts', import.meta.url).href

it('a process that stands still goes with its parent, even if that is killed with -9', async () => {
  const code = `
    import { Child } from ${JSON.stringify(childFile)}
    const child = new Child('engine.ts')
    child.listen(() => {
      child.signal('SIGSTOP')
      process.send(child.pid)
    })`
  const parent = spawn(process.execPath, ['--conditions=@holdfast/source', '--input-type=module', '--eval', code], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const [pid] = (await once(parent, 'message')) as [number]
  expect(isThere(pid)).toBe(true)
  parent.kill('SIGKILL')
  await vi.waitFor(() => expect(isThere(pid)).toBe(false), 10_000)
})

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startWatchdog } from 'holdfast/watchdog'
import { describe, expect, it, onTestFinished } from 'vitest'

// Real processes: what is tested here is that one dies, or doesn't.

/** How long a child may stand still, in ms. Long enough for a machine with other things to do. */
const after = 1_000

function childArgs(what: string): string[] {
  const script = fileURLToPath(new URL('child.ts', import.meta.url))
  return ['--conditions=@holdfast/source', script, what, String(after)]
}

function start(what: string, { onBlocked = 'kill', flags = [] as string[] } = {}) {
  const args = [...flags, ...childArgs(what), onBlocked]
  const begunAt = performance.now()
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (output.stderr += text))
  onTestFinished(() => void child.kill('SIGKILL'))
  const ended = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as string | null,
    tookMs: performance.now() - begunAt,
    ...output,
  }))
  return { child, output, ended }
}

describe('a thread that never comes back', () => {
  it('is killed with its process, and one line says what it was doing and what to do', async () => {
    const { child, ended } = start('loop')
    const { signal, tookMs, stdout, stderr } = await ended
    expect(signal).toBe('SIGKILL')
    expect(tookMs).toBeGreaterThan(after)
    expect(stdout).toBe('')
    expect(stderr.match(/\n/g)).toHaveLength(1)
    expect(stderr).toMatch(/has been blocked for 1\.\d s/)
    for (const part of [
      `process ${child.pid}`,
      'handler notify-partner, event 0198c7a2',
      'Look for an endless loop',
      'SIGKILL',
    ])
      expect(stderr).toContain(part)
    expect(stderr).not.toContain('some-other')
  })

  it.for(['silent', 'promises'])(
    'is killed when it said nothing, and when it is a chain of promises: %s',
    async (what) => {
      const { signal, stderr } = await start(what).ended
      expect(signal).toBe('SIGKILL')
      expect(stderr).toContain('The running code is unknown.')
    },
  )

  it('is killed with a short line, however long the text was', async () => {
    const { signal, stderr } = await start('long').ended
    expect(signal).toBe('SIGKILL')
    expect(stderr).toMatch(/Started last: é{250}\. Look/)
  })

  it('is killed when nobody reads the line', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-watchdog-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    // Those that Node makes for its children don't let a writer wait. This one does, for ever.
    execFileSync('mkfifo', [join(folder, 'pipe')])
    const pipe = openSync(join(folder, 'pipe'), 'r+')
    const child = spawn(process.execPath, childArgs('unheard'), { stdio: ['ignore', 'ignore', pipe] })
    onTestFinished(() => void child.kill('SIGKILL'))
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    closeSync(pipe)
  })

  it('is only spoken of, once for each time, where that was asked for', async () => {
    const { code, stdout, stderr } = await start('twice', { onBlocked: 'warn' }).ended
    expect([code, stdout]).toEqual([0, 'the end\n'])
    expect(stderr.trimEnd().split('\n')).toEqual(
      ['first', 'second'].map((time) => expect.stringContaining(`Started last: ${time}.`)),
    )
  })
})

describe('a process is left alone', () => {
  const unharmed = { code: 0, signal: null, stdout: 'the end\n', stderr: '' }

  it('that is busy, but pauses', async () => {
    expect(await start('busy').ended).toMatchObject(unharmed)
  })

  it('that was stopped for longer than is allowed, again and again', async () => {
    const { child, output, ended } = start('wait')
    while (output.stdout !== 'ready\n') await setTimeout(20)
    for (let i = 0; i < 2; i++) {
      child.kill('SIGSTOP')
      await setTimeout(1.5 * after)
      child.kill('SIGCONT')
      await setTimeout(after / 4)
    }
    child.stdin.end('end\n')
    expect(await ended).toMatchObject({ ...unharmed, stdout: 'ready\nthe end\n' })
  })

  it('whose inspector is open: a person may hold it', async () => {
    const { code, stderr } = await start('burn', { flags: ['--inspect=127.0.0.1:0'] }).ended
    expect(code).toBe(0)
    expect(stderr).not.toContain('holdfast')
  })

  it('whose watchdog was stopped', async () => {
    expect(await start('stopped').ended).toMatchObject(unharmed)
  })

  it('that is done: nothing keeps it alive', async () => {
    expect(await start('nothing').ended).toMatchObject(unharmed)
  })
})

it('refuses what can not be meant', () => {
  for (const options of [{ after: '10ms' }, { after: 'soon' }, { onBlocked: 'stop' }, { afterMs: 5 }, 60_000])
    expect(() => startWatchdog(options as never)).toThrow(expect.objectContaining({ code: 'OPTION_INVALID' }))
})

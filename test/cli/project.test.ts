import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, vi } from 'vitest'
import { createPlace } from './place.ts'

// Processes begin slowly on a machine that has much to do.
vi.setConfig({ testTimeout: 90_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
const manifestIn = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))

describe('holdfast init', () => {
  it('writes a project that works, and never over one that is there', async () => {
    using place = createPlace({ 'holdfast.config.ts': '', 'bank.ts': '' })
    rmSync(join(place.folder, 'package.json'))
    const dry = await place.json(['init', '--dry-run'])
    expect(dry).toMatchObject({
      code: 0,
      dryRun: true,
      written: expect.arrayContaining(['holdfast.config.ts', 'src/bank.ts']),
    })
    expect((await place.run(['init'])).stdout).toContain('wrote holdfast.config.ts\n')
    expect(manifestIn(place.folder).dependencies).toMatchObject({ holdfast: `^${manifestIn(root).version}` })
    const before = readFileSync(join(place.folder, 'holdfast.config.ts'), 'utf8')
    const again = await place.call(['init'])
    expect(again).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^FILE_EXISTS: /) })
    expect(readFileSync(join(place.folder, 'holdfast.config.ts'), 'utf8')).toBe(before)

    expect(await place.call(['migrate'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('balances, notify'),
    })
    const append = ['events', 'append', 'alice', 'FundsCredited', '--data', '{"amount":100}', '--reason', 'a first try']
    expect(await place.call(append)).toMatchObject({ code: 0, stdout: expect.stringContaining('version 1') })
    const drained = await place.run(['start', '--drain'])
    expect(drained).toMatchObject({ code: 0, stderr: expect.stringMatching(/Stopping \(drained\)\.\nStopped\.\n$/) })
    expect(drained.stdout).toContain('alice got money')
    const shown = await place.json(['projections', 'get', 'balances', 'alice', '--reveal', '--reason', 'to see'])
    expect(shown).toMatchObject({ ok: true, version: 1, data: { balance: 100 } })
  })

  it('leaves a package.json and a README as they are, and says what they lack', async () => {
    using place = createPlace({ 'holdfast.config.ts': '', 'README.md': 'mine' })
    const { written, next } = await place.json<{ written: string[]; next: string[] }>(['init'])
    expect(written).toEqual(['holdfast.config.ts', 'src/bank.ts', '.gitignore'])
    expect(next[0]).toBe('npm install holdfast zod')
    expect(readFileSync(join(place.folder, 'README.md'), 'utf8')).toBe('mine')
    expect(await place.json(['init', 'deeper/still'])).toMatchObject({ code: 0 })
    expect(readFileSync(join(place.folder, 'deeper/still/package.json'), 'utf8')).toContain('"name": "still"')
  })
})

describe('holdfast start', () => {
  it('runs until a signal, and stops cleanly; the others see it', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    const engine = place.spawn('start', '--name', 'night-shift')
    await vi.waitFor(() => expect(engine.output.stderr).toContain('Running balances, mails'), { timeout: 20_000 })
    await place.json(['events', 'append', 'a', 'Credited', '--data', '{"amount":5}', '--reason', 'x'])
    await vi.waitFor(
      async () => {
        const { subscriptions } = await place.json<{ subscriptions: object[] }>(['status'])
        expect(subscriptions).toMatchObject([
          { name: 'balances', state: 'live', owners: ['night-shift'], counts: { applied: 1 }, lag: { events: 0 } },
          { name: 'mails', state: 'live', owners: ['night-shift'] },
        ])
      },
      { timeout: 20_000, interval: 200 },
    )
    expect(await place.json(['doctor'])).toMatchObject({ code: 0, healthy: true })
    engine.process.kill('SIGTERM')
    expect(await engine.ended).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/SIGTERM[\s\S]*Stopped\.\n$/),
    })
    expect(await place.json(['status'])).toMatchObject({
      subscriptions: [{ state: 'idle', owners: [] }, { state: 'idle' }],
    })
  })

  it('is forced by a second signal', async () => {
    const slow = `
      import { defineEvents, defineHandler, defineConfig } from 'holdfast'
      import { z } from 'zod'
      const events = defineEvents({ Slow: z.object({}) })
      const slow = defineHandler('slow', { events, on: { Slow: () => new Promise((done) => { console.log('begun'); setTimeout(done, 60_000) }) } })
      export default defineConfig({ store: { sqlite: 'events.db' }, subscriptions: [slow] })`
    using place = createPlace({ 'holdfast.config.ts': slow })
    await place.json(['migrate'])
    await place.json(['events', 'append', 'a', 'Slow', '--data', '{}', '--reason', 'x'])
    const engine = place.spawn('start')
    await vi.waitFor(() => expect(engine.output.stdout).toContain('begun'), { timeout: 20_000 })
    engine.process.kill('SIGINT')
    await vi.waitFor(() => expect(engine.output.stderr).toContain('Stopping (SIGINT)'), { timeout: 20_000 })
    engine.process.kill('SIGINT')
    expect(await engine.ended).toMatchObject({ code: 130, stderr: expect.stringContaining('INTERRUPTED') })
  })

  it('has nothing to run without subscriptions', async () => {
    using place = createPlace({ 'holdfast.config.ts': "export default { store: { sqlite: 'events.db' } }" })
    expect(await place.json(['start'])).toMatchObject({ code: 2, error: { code: 'CONFIG_MISSING' } })
  })

  it('says nothing of what is in an event', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    await place.json([
      'events',
      'append',
      'a',
      'Debited',
      '--data',
      '{"amount":471108154,"note":"geheim"}',
      '--reason',
      'x',
    ])
    const { code, stdout, stderr } = await place.run(['start', '--drain'])
    expect(code).toBe(0)
    expect(stderr).toContain('lanes are held')
    expect(stdout + stderr).not.toMatch(/471108154|geheim/)
  })
})

describe('holdfast migrate', () => {
  it('makes a store, once, and only shows it when asked to', async () => {
    using place = createPlace()
    expect(await place.json(['migrate', '--dry-run'])).toMatchObject({
      code: 0,
      dryRun: true,
      migrations: expect.arrayContaining(['ground']),
    })
    expect(await place.json(['status'])).toMatchObject({ code: 1, error: { code: 'STORE_MISSING' } })
    expect(await place.json(['migrate', '--no-subscriptions'])).toMatchObject({ code: 0, subscriptions: [] })
    expect(await place.json(['status'])).toMatchObject({ subscriptions: [{ state: 'new' }, { state: 'new' }] })
    expect(await place.json(['migrate'])).toMatchObject({
      code: 0,
      migrations: [],
      subscriptions: ['balances', 'mails'],
    })
    expect(await place.json(['status'])).toMatchObject({ subscriptions: [{ state: 'idle' }, { state: 'idle' }] })
  })

  it('leaves alone what is no store', async () => {
    using place = createPlace()
    writeFileSync(place.file, 'Dear Ada, this is no database at all.')
    for (const args of [['migrate'], ['status'], ['verify'], ['doctor']]) {
      const { code } = await place.json(args)
      expect(code).toBe(args[0] === 'doctor' ? 3 : 1)
    }
    expect(readFileSync(place.file, 'utf8')).toBe('Dear Ada, this is no database at all.')
  })
})

describe('holdfast completion', () => {
  it.each(['bash', 'zsh', 'fish'])('knows every command, for %s', async (shell) => {
    using place = createPlace()
    const { code, stdout } = await place.call(['completion', shell])
    expect(code).toBe(0)
    for (const word of ['status', 'dlq', 'redrive', 'dry-run', 'tail']) expect(stdout).toContain(word)
  })

  it('completes in a bash', async ({ skip }) => {
    const { spawnSync } = await import('node:child_process')
    using place = createPlace()
    const { stdout: script } = await place.call(['completion', 'bash'])
    const ask = `${script}\nCOMP_WORDS=(holdfast dlq re); COMP_CWORD=2; _holdfast; echo "\${COMPREPLY[@]}"`
    const { status, stdout } = spawnSync('bash', ['-c', ask], { encoding: 'utf8' })
    if (status === null) return skip('no bash on this machine')
    expect(stdout).toBe('redrive resolve replay replay-all\n')
  })
})

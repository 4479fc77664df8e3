import { describe, expect, it, vi } from 'vitest'
import { createPlace, type Place } from './place.ts'

vi.setConfig({ testTimeout: 90_000 })

const append = (place: Place, key: string) =>
  place.json(['events', 'append', key, 'Credited', '--data', '{"amount":4711}', '--reason', 'x'])
const soon = { timeout: 20_000, interval: 50 }

describe('what goes on until ^C', () => {
  it('tells every event once as it comes, and ends well', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    await append(place, 'a')
    const tail = place.spawn('events', 'tail', '--follow', '--json')
    const watch = place.spawn('status', '--watch', '--every', '200ms', '--json')
    const keys = () =>
      tail.output.stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => (JSON.parse(line) as { event: { key: string } }).event.key)
    await vi.waitFor(() => expect(keys()).toEqual(['a']), soon)
    await append(place, 'b')
    await append(place, 'c')
    await vi.waitFor(() => expect(keys()).toEqual(['a', 'b', 'c']), soon)
    await vi.waitFor(() => expect(watch.output.stdout.split('\n').length).toBeGreaterThan(3), soon)
    tail.process.kill('SIGINT')
    watch.process.kill('SIGTERM')
    expect(await tail.ended).toMatchObject({ code: 0, stderr: '' })
    const watched = await watch.ended
    expect(watched).toMatchObject({ code: 0, stderr: '' })
    for (const line of watched.stdout.trimEnd().split('\n')) expect(JSON.parse(line)).toMatchObject({ ok: true })
    expect((await tail.ended).stdout).not.toContain('4711')
  })

  it('ends quietly when nobody reads any more', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    await append(place, 'a')
    const tail = place.spawn('events', 'tail', '--follow')
    await vi.waitFor(() => expect(tail.output.stdout).toContain('Credited'), soon)
    tail.process.stdout.destroy()
    await append(place, 'b')
    const { code, stderr } = await tail.ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })

  it('is interrupted with 130, says so, and what it asked for is kept', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    await place.json(['events', 'append', 'a', 'Debited', '--data', '{"amount":1}', '--reason', 'x'])
    await place.run(['start', '--drain'])
    const { redrive } = await place.json<{ redrive: { id: string } }>([
      'dlq',
      'redrive',
      'balances',
      '--all',
      '--no-wait',
      '--reason',
      'x',
    ])
    const show = place.spawn('redrives', 'show', redrive.id, '--watch', '--json')
    await vi.waitFor(() => expect(show.output.stderr).toContain('Following'), soon)
    show.process.kill('SIGINT')
    const { code, stdout } = await show.ended
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({
      code: 130,
      ok: false,
      error: { code: 'INTERRUPTED' },
      redrive: redrive.id,
    })
    expect(await place.json(['redrives', 'show', redrive.id])).toMatchObject({
      code: 0,
      redrive: { status: 'running' },
    })
  })
})

describe('a terminal', () => {
  it('has colours and progress, and a pipe has neither', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    await place.json(['events', 'append', 'a', 'Debited', '--data', '{"amount":1}', '--reason', 'x'])
    await place.run(['start', '--drain'])
    const dlq = ['dlq', 'redrive', 'balances', '--all', '--reason', 'x']
    const shown = await place.call(dlq, { typed: [], columns: 100 })
    expect(shown.code).toBe(3)
    expect(shown.stderr).toContain('\r\u001b[Kredrive [')
    expect(shown.stdout).toContain('\u001b[31mfailed')
    const piped = await place.call(dlq)
    for (const code of ['\u001b', '\r']) expect(piped.stdout + piped.stderr).not.toContain(code)
    const plain = await place.call(['status'], { typed: [], env: { NO_COLOR: '1' } })
    expect(plain.stdout).not.toContain('\u001b')
    const flagged = await place.call(['status', '--no-color'], { typed: [] })
    expect(flagged.stdout).not.toContain('\u001b')
  })
})

import { execFileSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import fs, { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { connect, createServer } from 'node:net'
import { setTimeout as later } from 'node:timers'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { explain, OutsideWatch } from '../../src/testing/kit/outside.ts'

const callsOf = (work: () => unknown) => {
  using watch = new OutsideWatch()
  watch.run(work)
  return watch.calls.map(({ call }) => call)
}

describe('what is outside', () => {
  it.for<readonly [string, () => unknown]>([
    ['Date.now', () => Date.now()],
    ['new Date()', () => new Date()],
    ['Date()', () => Date()],
    ['performance.now', () => performance.now()],
    ['Math.random', () => Math.random()],
    ['crypto.randomUUID', () => crypto.randomUUID()],
    ['crypto.getRandomValues', () => crypto.getRandomValues(new Uint8Array(1))],
    ['setTimeout', () => clearTimeout(setTimeout(() => undefined, 0))],
    ['setInterval', () => clearInterval(setInterval(() => undefined, 1_000))],
    ['setImmediate', () => clearImmediate(setImmediate(() => undefined))],
    ['fetch', () => void fetch('data:,').catch(() => undefined)],
  ])('is seen: %s', ([call, work]) => {
    expect(callsOf(work)).toEqual([call])
  })

  it.for<readonly [string, () => unknown]>([
    ['crypto.randomUUID', () => randomUUID()],
    ['crypto.randomBytes', () => randomBytes(1)],
    ['fs.readFileSync', () => readFileSync('package.json')],
    ['fs.existsSync', () => fs.existsSync('package.json')],
    ['fs/promises.readFile', () => readFile('package.json')],
    ['timers.setTimeout', () => clearTimeout(later(() => undefined, 0))],
    ['timers/promises.setTimeout', () => sleep(0)],
    ['child_process.execFileSync', () => execFileSync(process.execPath, ['--version'])],
    ['process.hrtime.bigint', () => process.hrtime.bigint()],
    ['process.hrtime', () => process.hrtime()],
  ])('is seen where it was imported from Node: %s', ([call, work]) => {
    expect(callsOf(work)).toEqual([call])
  })

  it('is not what is written to a file that is open, as logs are', () => {
    const file = fs.openSync('/dev/null', 'w')
    expect(callsOf(() => fs.writeSync(file, 'a line'))).toEqual([])
    fs.closeSync(file)
  })

  it('is seen when it is the network, too', async () => {
    const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const ended = Promise.withResolvers<void>()
    const calls = callsOf(() =>
      connect(port, '127.0.0.1')
        .on('error', () => undefined)
        .on('close', ended.resolve),
    )
    expect(calls).toEqual(['a connection of node:net'])
    await ended.promise
    const answered = Promise.withResolvers<void>()
    const asked = callsOf(() =>
      request({ port, host: '127.0.0.1' })
        .on('error', () => answered.resolve())
        .end(),
    )
    expect(asked).toContain('a request of node:http')
    await answered.promise
    server.close()
  })

  it('is named with the line that called, and what to do instead', () => {
    using watch = new OutsideWatch()
    watch.run(() => Date.now())
    watch.run(() => Math.random())
    expect(watch.calls[0]?.place).toMatch(/^test\/kit\/outside\.test\.ts:\d+$/)
    const line = Number(watch.calls[0]?.place?.split(':')[1])
    expect(watch.calls[1]?.place).toBe(`test/kit/outside.test.ts:${line + 1}`)
    expect(explain(watch.calls, 'fold')).toEqual([
      `test/kit/outside.test.ts:${line} calls Date.now.`,
      `test/kit/outside.test.ts:${line + 1} calls Math.random.`,
      'Take the time from the event: event.time is when it happened.',
      'Take it from the event: event.id is unique, or put the random value into its data.',
    ])
  })

  it('is explained for whoever it is about, and a call that makes others is told once', () => {
    const calls = [
      { call: 'fetch', place: 'shop.ts:3' },
      { call: 'a connection of node:net', place: 'shop.ts:3' },
    ]
    expect(explain(calls, 'fold')).toEqual([
      'shop.ts:3 calls fetch.',
      'Call services in a handler, and put the answer into an event.',
    ])
    expect(explain(calls, 'handler').join()).toContain('outside.reach(…)')
    expect(explain([{ call: 'setTimeout', place: 'shop.ts:4' }], 'handler').join()).not.toContain('do it in a handler')
    expect(explain([{ call: 'Date.now', place: 'shop.ts:5' }], 'decision').join()).not.toContain('event.time')
  })

  it('is not the calendar, nor what nobody watches', () => {
    expect(callsOf(() => ['one'].map(Math.random))).toEqual(['Math.random'])
    expect(callsOf(() => [new Date(0), Date.UTC(2026), Date.parse('2026-01-01')])).toEqual([])
    using watch = new OutsideWatch()
    expect(new Date(0)).toBeInstanceOf(Date)
    expect(Date.now()).toBeGreaterThan(0)
    expect(watch.calls).toEqual([])
  })

  it('is seen behind a wait, each by its own watch', async () => {
    using one = new OutsideWatch()
    using other = new OutsideWatch()
    const ask = async (chance: boolean) => {
      await Promise.resolve()
      return chance ? Math.random() : Date.now()
    }
    await Promise.all([one.run(() => ask(true)), other.run(() => ask(false)), ask(true)])
    expect(one.calls.map(({ call }) => call)).toEqual(['Math.random'])
    expect(other.calls.map(({ call }) => call)).toEqual(['Date.now'])
  })

  it('is as it was when the last watch is closed, whatever was thrown', () => {
    const places = [
      [globalThis, 'Date'],
      [Date, 'now'],
      [Math, 'random'],
      [crypto, 'randomUUID'],
      [globalThis, 'fetch'],
      [fs, 'existsSync'],
      [process, 'hrtime'],
    ]
    const now = () => places.map(([owner, name]) => Reflect.get(owner as object, name as string) as unknown)
    const before = now()
    expect(() => {
      using watch = new OutsideWatch()
      using other = new OutsideWatch()
      other[Symbol.dispose]()
      other[Symbol.dispose]()
      expect(Date).not.toBe(before[0])
      watch.run(() => {
        throw new RangeError('away')
      })
    }).toThrow('away')
    for (const [i, value] of now().entries()) expect(value).toBe(before[i])
    expect(existsSync).toBe(fs.existsSync)
  })

  it('keeps the peace with fake timers', async () => {
    vi.useFakeTimers({ now: 42 })
    try {
      using watch = new OutsideWatch()
      expect(watch.run(() => Date.now())).toBe(42)
      expect(watch.calls).toHaveLength(1)
      vi.useRealTimers()
    } finally {
      vi.useRealTimers()
    }
    expect(new Date().getTime()).toBeGreaterThan(42)
    await sleep(0)
  })
})

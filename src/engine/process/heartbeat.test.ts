import { createVirtualRuntime } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { away } from '../../../test/noting.ts'
import { HoldfastError } from '../../index.ts'
import { systemChannel } from '../../runtime/system.ts'
import { Heartbeat, type HeartbeatParts } from './heartbeat.ts'
import { EngineEmitter } from '../events.ts'
import type { Runner } from './runner.ts'

interface Made {
  readonly name: string
  readonly version?: number
  /** It has workers, who find out about the store by themselves. */
  readonly isBusy?: boolean
  readonly register?: () => Promise<void>
}

function attending(...subscriptions: Made[]) {
  const runtime = createVirtualRuntime()
  const done: string[] = []
  const logged: [string, object][] = []
  const told: unknown[] = []
  const asked: object[] = []
  const script = {
    isDown: false,
    error: away() as Error,
    listeners: new Set<() => void>(),
    before: undefined as (() => Promise<void>) | undefined,
  }
  const note = (level: string) => (fields: object) => void logged.push([level, fields])
  const logger = { info: note('info'), warn: note('warn'), error: note('error') }
  const emitter = new EngineEmitter(logger, systemChannel)
  emitter.on('store.failed', (event) => void told.push(event))
  const runners = subscriptions.map(({ name, version, isBusy = false, register }) => {
    const runner = {
      subscription: { name, consumer: version === undefined ? { kind: 'handler' } : { kind: 'fold', version } },
      isRunning: false,
      start: () => {
        runner.isRunning = true
        done.push(`start ${name}`)
      },
      register: async () => {
        done.push(`register ${name}`)
        await register?.()
      },
      settle: (view: { readonly name: string }) => void done.push(`settle ${name} ${view.name}`),
      heal: () => void done.push(`heal ${name}`),
      block: ({ state, by, attempts, retryAt }: Record<string, unknown>) => {
        done.push(`block ${name} ${String(state)} ${String(by)} ${String(attempts)}`)
        expect(retryAt).toBeGreaterThan(runtime.clock.now())
        return !isBusy
      },
      fail: (error: { readonly code: string }) => void done.push(`fail ${name} ${error.code}`),
    }
    return runner as unknown as Runner
  })
  const store = {
    subscriptions: {
      attend: async (request: { readonly subscriptions: readonly string[] }) => {
        asked.push(request)
        if (script.before) await script.before()
        if (script.isDown) throw script.error
        return request.subscriptions.map((name) => ({ name }))
      },
      leave: async (owner: string) => {
        if (script.isDown) throw script.error
        done.push(`leave ${owner}`)
      },
      onRelease: (wake: () => void) => {
        script.listeners.add(wake)
        return () => void script.listeners.delete(wake)
      },
    },
  }
  const settings = { owner: 'ada', leaseMs: 9_000, beatMs: 250 }
  const parts = { store, runners, runtime, settings, emitter, logger } as unknown as HeartbeatParts
  const attendance = new Heartbeat(parts)
  const begin = async (...unregistered: number[]) => {
    const running = attendance.run(unregistered.map((i) => runners[i] as Runner))
    await runtime.advance(0)
    return running
  }
  const taken = () => done.splice(0)
  return { attendance, runtime, runners, begin, taken, logged, told, asked, script, settings }
}

describe('a process', () => {
  it('says at every beat that it is there, and each of its subscriptions hears of its own', async () => {
    const { attendance, begin, taken, asked, runtime, script } = attending({ name: 'a', version: 3 }, { name: 'b' })
    const running = begin()
    await runtime.advance(0)
    expect(taken()).toEqual(['start a', 'start b', 'settle a a', 'settle b b'])
    expect(asked).toEqual([{ owner: 'ada', subscriptions: ['a', 'b'], leaseMs: 9_000, versions: { a: 3 } }])
    await runtime.advance(249)
    expect(asked).toHaveLength(1)
    await runtime.advance(1)
    expect(asked).toHaveLength(2)
    attendance.look()
    await runtime.advance(0)
    expect(asked).toHaveLength(3)
    for (const wake of script.listeners) wake()
    await runtime.advance(0)
    expect(asked).toHaveLength(4)
    attendance.stop()
    await running
    taken()
    await runtime.advance(10_000)
    expect([asked.length, script.listeners.size, taken()]).toEqual([4, 0, []])
  })

  it('says so often enough where its lease is shorter than a few beats', async () => {
    const { attendance, begin, asked, runtime, settings } = attending({ name: 'a' })
    settings.leaseMs = 300
    const running = begin()
    await runtime.advance(1_000)
    expect(asked).toHaveLength(11)
    attendance.stop()
    await running
  })

  it('asks nothing where nothing runs', async () => {
    const { begin, asked, attendance, runtime } = attending()
    const running = begin()
    await runtime.advance(1_000)
    expect(asked).toEqual([])
    attendance.stop()
    await running
  })

  it('takes its leave, and says so where it can not', async () => {
    const { attendance, taken, logged, script } = attending()
    await attendance.leave()
    expect([taken(), logged]).toEqual([['leave ada'], []])
    script.isDown = true
    await attendance.leave()
    expect(logged).toEqual([['warn', { error: script.error }]])
  })
})

describe('a subscription that the store could not take yet', () => {
  it('is set up when it can, and then looked after at once, beside the others', async () => {
    let isDown = true
    const register = async () => {
      if (isDown) throw away()
    }
    const { attendance, begin, taken, runtime } = attending({ name: 'a' }, { name: 'late', register })
    const running = begin(1)
    await runtime.advance(0)
    expect(taken()).toEqual(['start a', 'register late', 'settle a a', 'block late blocked store 1'])
    isDown = false
    await runtime.advance(20_000)
    const after = taken()
    const started = after.indexOf('start late')
    expect(after.slice(0, started)).not.toContain('settle late late')
    expect(after.slice(started, started + 5)).toEqual([
      'start late',
      'heal a',
      'heal late',
      'settle a a',
      'settle late late',
    ])
    attendance.stop()
    await running
  })

  it('fails by what waiting does not mend, and the others go on', async () => {
    const register = () => Promise.reject(new HoldfastError('PROJECTION_CHANGED', 'It is another one.'))
    const { attendance, begin, taken, runtime } = attending({ name: 'a' }, { name: 'bad', register })
    const running = begin(1)
    await runtime.advance(0)
    expect(taken()).toContain('fail bad PROJECTION_CHANGED')
    attendance.stop()
    await running
  })

  it('is not begun any more when it is stopped first', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { attendance, begin, taken, runtime } = attending({ name: 'late', register: () => promise })
    const running = begin(0)
    await runtime.advance(0)
    attendance.stop()
    resolve()
    await running
    expect(taken()).toEqual(['register late'])
  })
})

describe('a store that is away', () => {
  it('blocks those that have nobody to find out, is logged once, and heals all', async () => {
    const made = attending({ name: 'idle' }, { name: 'busy', isBusy: true })
    const { attendance, begin, taken, runtime, logged, told, script } = made
    const running = begin()
    await runtime.advance(0)
    taken()
    script.isDown = true
    await runtime.advance(250)
    expect(taken()).toEqual(['block idle blocked store 1', 'block busy blocked store 1'])
    await runtime.advance(60_000)
    const again = taken()
    expect(again.length).toBeGreaterThan(2)
    expect(again[0]).toBe('block idle blocked store 2')
    expect(logged).toEqual([['warn', { subscription: 'idle', error: script.error }]])
    expect(told[0]).toEqual({
      subscription: 'idle',
      error: script.error,
      attempt: 1,
      retryInMs: expect.any(Number) as unknown,
    })
    expect(told).toHaveLength(1 + again.length / 2)
    script.isDown = false
    // A store that calls is there.
    for (const wake of script.listeners) wake()
    await runtime.advance(0)
    expect(taken().slice(0, 4)).toEqual(['heal idle', 'heal busy', 'settle idle idle', 'settle busy busy'])
    await runtime.advance(250)
    expect(taken()).toEqual(['settle idle idle', 'settle busy busy'])
    attendance.stop()
    await running
  })

  it('does not keep it from stopping', async () => {
    const { attendance, begin, taken, runtime, script } = attending({ name: 'a' })
    script.isDown = true
    const running = begin()
    await runtime.advance(1_000)
    attendance.stop()
    await running
    expect(taken().filter((one) => one.startsWith('settle'))).toEqual([])
  })

  it('for good is the end of it, loudly', async () => {
    const { begin, runtime, logged, script } = attending({ name: 'a' })
    script.isDown = true
    script.error = new HoldfastError('INTERNAL', 'It will never be.')
    const running = begin()
    await runtime.advance(0)
    await running
    expect(logged).toEqual([['error', { error: script.error }]])
    expect(script.listeners.size).toBe(0)
  })
})

describe('a caller that has to know what the store has now', () => {
  it('hears it from a question that was asked after that, and not from one that was under way', async () => {
    const { attendance, begin, runtime, asked, script } = attending({ name: 'a' })
    const gate = Promise.withResolvers<void>()
    script.before = () => (asked.length === 2 ? gate.promise : Promise.resolve())
    const running = begin()
    await runtime.advance(250)
    expect(asked).toHaveLength(2)
    let heard = 0
    void attendance.heard().then(() => (heard = asked.length))
    gate.resolve()
    await runtime.advance(0)
    // At once, and not only with the next beat.
    expect(heard).toBe(3)
    attendance.stop()
    await running
  })

  it('waits while the store is away, and no longer than this process attends', async () => {
    const { attendance, begin, runtime, script } = attending({ name: 'a' })
    const running = begin()
    script.isDown = true
    let isHeard = false
    void attendance.heard().then(() => (isHeard = true))
    await runtime.advance(5_000)
    expect(isHeard).toBe(false)
    attendance.stop()
    await running
    expect(isHeard).toBe(true)
    await attendance.heard()
  })
})

import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createLog } from 'holdfast'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { balances, bank, createWorld, credited, debited } from '../../test/fixtures.ts'
import type { Channel } from '../runtime/ports.ts'
import { systemChannel } from '../runtime/system.ts'
import { EngineEmitter, type EngineEventName, type Logger, warningLogger } from './events.ts'

const names = ['subscription.state', 'partition.claimed', 'page.committed', 'lane.held'] satisfies EngineEventName[]
const released = { subscription: 'balances', lane: 'bob' }

function listen(name: string, listener: (message: unknown) => void): () => void {
  subscribe(name, listener)
  const end = () => void unsubscribe(name, listener)
  onTestFinished(end)
  return end
}

function createLogger() {
  return { info: vi.fn<Logger['info']>(), warn: vi.fn<Logger['warn']>(), error: vi.fn<Logger['error']>() }
}

describe('an engine', () => {
  it('publishes on its channels what it tells its listeners, without being asked', async () => {
    await using world = await createWorld()
    const engine = world.engine([balances])
    const told: unknown[] = []
    const published: unknown[] = []
    for (const name of names) {
      engine.on(name, (event) => void told.push([name, event]))
      listen(`holdfast:${name}`, (event) => void published.push([name, event]))
    }
    await createLog({ store: world.store, events: bank }).append('bob', [credited(1), debited(5)])
    await world.settle(engine)
    expect(published).toEqual(told)
    expect(new Set(told.map((one) => (one as [string])[0]))).toEqual(new Set(names))
    expect(published).toContainEqual(['lane.held', expect.objectContaining({ lane: 'bob', status: 'parked' })])
  })

  it('is heard from the moment somebody listens until nobody does', () => {
    const emitter = new EngineEmitter(createLogger(), systemChannel)
    const heard: unknown[] = []
    emitter.emit('lane.released', released)
    const end = listen('holdfast:lane.released', (event) => void heard.push(event))
    emitter.emit('lane.released', released)
    end()
    emitter.emit('lane.released', released)
    expect(heard).toEqual([released])
    expect(channel('holdfast:lane.released').hasSubscribers).toBe(false)
  })
})

describe('listeners', () => {
  it('are known as long as there are any, of the engine or of its channel', () => {
    const channelOf = { hasSubscribers: false, publish: () => undefined }
    const emitter = new EngineEmitter(createLogger(), () => channelOf)
    const isHeard = () => emitter.isHeard('lane.released')
    expect(isHeard()).toBe(false)
    const first = emitter.on('lane.released', () => undefined)
    const second = emitter.on('lane.released', () => undefined)
    expect([isHeard(), emitter.isHeard('lane.held')]).toEqual([true, false])
    first()
    expect(isHeard()).toBe(true)
    second()
    expect(isHeard()).toBe(false)
    channelOf.hasSubscribers = true
    expect(isHeard()).toBe(true)
  })

  it('hear nothing any more when they have left', () => {
    const logger = createLogger()
    const emitter = new EngineEmitter(logger, () => ({ hasSubscribers: false, publish: () => undefined }))
    const listener = vi.fn<() => void>()
    const leave = emitter.on('lane.released', listener)
    emitter.emit('lane.released', released)
    leave()
    emitter.emit('lane.released', released)
    emitter.emit('lane.held', {} as never)
    expect(listener).toHaveBeenCalledExactlyOnceWith(released)
    expect(logger.error).not.toHaveBeenCalled()
  })
})

it('what needs a person is seen where nobody asked for lines, and nothing else is', () => {
  const said: unknown[][] = []
  for (const name of ['log', 'info', 'warn', 'error'] as const) {
    const spy = vi.spyOn(console, name).mockImplementation((...args) => void said.push([name, ...args]))
    onTestFinished(() => spy.mockRestore())
  }
  const fields = { subscription: 's' }
  warningLogger.info(fields, 'one')
  warningLogger.warn(fields, 'two')
  warningLogger.error(fields, 'three')
  expect(said).toEqual([
    ['warn', 'holdfast: two', fields],
    ['error', 'holdfast: three', fields],
  ])
})

describe('the channels', () => {
  it('are opened once, and nothing is published while nobody listens', () => {
    const publish = vi.fn<Channel['publish']>()
    const open = vi.fn<(name: string) => Channel>(() => ({ hasSubscribers: false, publish }))
    const emitter = new EngineEmitter(createLogger(), open)
    for (let i = 0; i < 3; i++) emitter.emit('lane.released', released)
    expect(open.mock.calls).toEqual([['holdfast:lane.released']])
    expect(publish).not.toHaveBeenCalled()
  })

  it('and listeners that throw are logged, and the others hear it all the same', () => {
    const logger = createLogger()
    const publish = vi.fn<Channel['publish']>(() => {
      throw new Error('the channel')
    })
    const emitter = new EngineEmitter(logger, () => ({ hasSubscribers: true, publish }))
    const second = vi.fn<() => void>()
    emitter.on('lane.released', () => {
      throw new Error('the first')
    })
    emitter.on('lane.released', second)
    emitter.emit('lane.released', released)
    expect(second).toHaveBeenCalledOnce()
    expect(publish).toHaveBeenCalledExactlyOnceWith(released)
    expect(logger.error.mock.calls).toEqual(
      ['the first', 'the channel'].map((message) => [
        { event: 'lane.released', error: new Error(message) },
        'a listener threw',
      ]),
    )
  })
})

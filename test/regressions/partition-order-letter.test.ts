import {
  createEngine,
  createLog,
  createOperator,
  defineHandler,
  definePolicy,
  failure,
  park,
  type Store,
} from 'holdfast'
import { expect, it } from 'vitest'
import { bank, credited } from '../fixtures.ts'
import { codeOf } from '../operator/scene.ts'
import { describeStores } from '../rebuild/stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

interface Call {
  readonly name: string
  readonly redrive: string | undefined
}

/** Fails for good at amounts of `poison`. */
function calling(poison: ReadonlySet<number>, calls: Call[]) {
  return defineHandler('calls', {
    events: bank,
    order: 'partition',
    failure: definePolicy({ permanent: park }),
    on: {
      Credited: ({ key, data }, { redrive }) => {
        calls.push({ name: `${key}${data.amount}`, redrive })
        if (poison.has(data.amount)) throw failure.permanent('never')
      },
    },
  })
}

async function begin(store: Store, poison: ReadonlySet<number>, calls: Call[]) {
  const subscriptions = [calling(poison, calls)]
  const engine = createEngine({ store, subscriptions, logger: silent })
  const operator = createOperator({ store, subscriptions, by: 'ada' })
  await engine.start()
  return { engine, operator }
}

async function fill(store: Store): Promise<void> {
  const log = createLog({ store, events: bank })
  await log.append('a', [credited(1)])
  await log.append('b', [credited(2)])
  await log.append('b', [credited(3)])
  await log.append('a', [credited(4)])
}

const names = (calls: readonly Call[]) => calls.map(({ name }) => name)
const partitions = { partitions: 1 }

describeStores("order: 'partition': an event that fails for good is a letter", (open) => {
  async function blocked(poison: Set<number>, calls: Call[]) {
    const place = await open()
    const { store } = place
    await fill(store)
    await store.subscriptions.register({ name: 'calls', kind: 'handler', table: undefined, start: 0, ...partitions })
    const { engine, operator } = await begin(store, poison, calls)
    expect(await codeOf(engine.drain())).toBe('SUBSCRIPTION_BLOCKED')
    expect(names(calls)).toEqual(['a1', 'b2'])
    expect(await operator.letters({ subscription: 'calls' })).toMatchObject([
      { status: 'parked', event: { position: 2 } },
    ])
    const [status] = (await engine.status()).subscriptions
    expect(status?.state).toMatchObject({ state: 'blocked', by: 'order', error: { code: 'SUBSCRIPTION_BLOCKED' } })
    expect(await engine.verify('calls')).toMatchObject({ ok: true, counts: { applied: 1, held: 1 } })
    const dispose = async () => {
      await engine.stop()
      await store.close()
    }
    return { store, engine, operator, [Symbol.asyncDispose]: dispose }
  }

  it('can be discarded, and what is behind it goes on in order', async () => {
    const calls: Call[] = []
    await using scene = await blocked(new Set([2]), calls)
    await scene.operator.discard('calls', { letter: 2 }, { reason: 'not needed' })
    await scene.engine.drain()
    expect(names(calls)).toEqual(['a1', 'b2', 'b3', 'a4'])
    expect(await scene.engine.verify('calls')).toMatchObject({
      ok: true,
      counts: { applied: 3, discarded: 1, held: 0 },
    })
    expect((await scene.engine.status()).subscriptions[0]?.state.state).toBe('live')
  })

  it('can be redriven, the handler sees by which redrive, and nothing overtakes it', async () => {
    const calls: Call[] = []
    const poison = new Set([2])
    await using scene = await blocked(poison, calls)
    const again = await scene.operator.redrive('calls', { letter: 2 }, { reason: 'try' })
    expect(await codeOf(scene.engine.drain())).toBe('SUBSCRIPTION_BLOCKED')
    expect(calls.slice(2)).toEqual([{ name: 'b2', redrive: again.redrive.id }])
    poison.clear()
    const fixed = await scene.operator.redrive('calls', { letter: 2 }, { reason: 'fixed' })
    await scene.engine.drain()
    expect(calls.slice(3)).toEqual([
      { name: 'b2', redrive: fixed.redrive.id },
      { name: 'b3', redrive: undefined },
      { name: 'a4', redrive: undefined },
    ])
    expect(await scene.engine.verify('calls')).toMatchObject({ ok: true, counts: { applied: 4, held: 0 } })
  })

  it('can be edited', async () => {
    const calls: Call[] = []
    await using scene = await blocked(new Set([2]), calls)
    await scene.operator.revise({ subscription: 'calls', position: 2 }, { data: { amount: 20 } }, 'typing error')
    await scene.operator.redrive('calls', { letter: 2 }, { reason: 'edited' })
    await scene.engine.drain()
    expect(names(calls).slice(2)).toEqual(['b20', 'b3', 'a4'])
  })

  it('the next process begins with it, and not behind it', async () => {
    const calls: Call[] = []
    const poison = new Set([2])
    await using scene = await blocked(poison, calls)
    await scene.engine.stop()
    const next = await begin(scene.store, poison, calls)
    await using engine = next.engine
    expect(await codeOf(engine.drain())).toBe('SUBSCRIPTION_BLOCKED')
    expect(names(calls)).toEqual(['a1', 'b2'])
    const log = createLog({ store: scene.store, events: bank })
    await log.append('c', [credited(5)])
    expect(await codeOf(engine.drain())).toBe('SUBSCRIPTION_BLOCKED')
    await next.operator.resolve('calls', { letter: 2 }, { reason: 'done by hand' })
    await engine.drain()
    expect(names(calls)).toEqual(['a1', 'b2', 'b3', 'a4', 'c5'])
    expect(await engine.verify('calls')).toMatchObject({ ok: true })
  })
})

describeStores('a handler can tell a redrive from a retry', (open) => {
  it('ctx.redrive is the id of the redrive, for every letter of a lane that it releases', async () => {
    await using place = await open()
    const { store } = place
    await fill(store)
    const calls: Call[] = []
    let isDown = true
    const handler = defineHandler('calls', {
      events: bank,
      failure: definePolicy({ permanent: park }),
      on: {
        Credited: ({ key, data }, { redrive }) => {
          calls.push({ name: `${key}${data.amount}`, redrive })
          if (isDown && key === 'b') throw failure.permanent('never')
        },
      },
    })
    await using engine = createEngine({ store, subscriptions: [handler], logger: silent })
    await engine.start()
    await engine.drain()
    expect(calls.every(({ redrive }) => redrive === undefined)).toBe(true)
    isDown = false
    calls.length = 0
    const operator = createOperator({ store, subscriptions: [handler], by: 'ada' })
    const { redrive } = await operator.redrive('calls', { lane: 'b' }, { reason: 'fixed' })
    await engine.drain()
    expect(calls).toEqual([
      { name: 'b2', redrive: redrive.id },
      { name: 'b3', redrive: redrive.id },
    ])
  })
})

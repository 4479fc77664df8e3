import {
  createEngine,
  createLog,
  createOperator,
  defineEvents,
  defineProjection,
  type Engine,
  evolved,
  read,
  type Store,
} from 'holdfast'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { codeOf } from '../operator/scene.ts'
import { describeStores } from '../rebuild/stores.ts'
import { dropRebuild, rebuild, switchRebuild } from '../acts.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** Events of many keys, gathered by customer. The second schema needs an upcast, which throws for what is not a number until it is fixed. */
function shop(isFixed: boolean) {
  const step = (data: unknown) => {
    const { n, ...rest } = data as { n: unknown; customer: string }
    if (typeof n !== 'number' && !isFixed) throw new Error('n is not a number')
    return { ...rest, n: Number(n) }
  }
  const events = defineEvents({ Noted: evolved(z.object({ customer: z.string(), n: z.number() }), [step]) })
  const gathered = defineProjection('gathered', {
    events,
    key: ({ data }) => data.customer,
    initial: () => ({ seen: [] as number[] }),
    on: { Noted: (row, { data }) => ({ seen: [...row.seen, data.n] }) },
  })
  return { events, gathered }
}

const old = defineEvents({ Noted: z.object({ customer: z.string(), n: z.union([z.number(), z.string()]) }) })
const broken = shop(false)
const fixed = shop(true)

type Noted = readonly [key: string, customer: string, n: number | string]

async function append(store: Store, ...noted: readonly Noted[]): Promise<void> {
  const log = createLog({ store, events: old })
  for (const [key, customer, n] of noted) await log.append(key, [{ type: 'Noted', data: { customer, n } }])
}

async function start(store: Store, { gathered }: typeof fixed): Promise<Engine> {
  const engine = createEngine({ store, subscriptions: [gathered], logger: silent })
  await engine.start()
  return engine
}

const operatorOf = (store: Store, { gathered }: typeof fixed) =>
  createOperator({ store, subscriptions: [gathered], by: 'ada' })

const seen = async (engine: Engine, customer: string) => (await engine.read(fixed.gathered).get(customer))?.data.seen

describeStores('a projection with its own key keeps the order of its rows', (open) => {
  it('an event that can not be read is not overtaken, and after the fix and a redrive the row is in order', async () => {
    await using place = await open()
    const { store } = place
    await append(store, ['s1', 'c1', 1], ['s2', 'c1', '2'], ['s3', 'c1', 3], ['s4', 'c2', 4])
    const first = await start(store, broken)
    expect(await codeOf(first.drain())).toBe('SUBSCRIPTION_BLOCKED')
    expect(await seen(first, 'c1')).toEqual([1])
    const [status] = (await first.status()).subscriptions
    expect(status?.state).toMatchObject({ state: 'blocked', by: 'order', error: { code: 'SUBSCRIPTION_BLOCKED' } })
    // What waits behind it is still in the log, and not copied.
    expect(await first.letters({ subscription: 'gathered' })).toMatchObject([
      { status: 'parked', event: { position: 2 } },
    ])
    expect(await first.verify('gathered')).toMatchObject({ ok: true, counts: { applied: 1, held: 1 } })
    await first.stop()

    const second = await start(store, fixed)
    await using running = second
    const operator = operatorOf(store, fixed)
    expect(await codeOf(running.drain())).toBe('SUBSCRIPTION_BLOCKED')
    expect(await running.verify('gathered')).toMatchObject({ ok: true })
    const dry = await operator.dryRun('gathered', { letter: 2 })
    expect(dry).toMatchObject({ totals: { pass: 1, fail: 0 } })
    expect(dry.lanes[0]?.changes).toMatchObject([
      { before: { data: { seen: [1] } }, after: { data: { seen: [1, 2] } } },
    ])
    await operator.redrive('gathered', { letter: 2 }, { reason: 'the upcast is fixed' })
    await running.drain()
    expect(await seen(running, 'c1')).toEqual([1, 2, 3])
    expect(await seen(running, 'c2')).toEqual([4])
    expect(await running.verify('gathered')).toMatchObject({ ok: true, counts: { applied: 4, held: 0 } })
    expect((await running.status()).subscriptions[0]?.state.state).toBe('live')
  })

  it('a row that is held when the event turns out to be its own comes first', async () => {
    await using place = await open()
    const { store } = place
    const refuse = (isRefusing: boolean) =>
      defineProjection('gathered', {
        events: (isRefusing ? broken : fixed).events,
        key: ({ data }) => data.customer,
        initial: () => ({ seen: [] as number[] }),
        on: {
          Noted: (row, { data }) => {
            if (data.n === 2 && isRefusing) throw new Error('not 2')
            return { seen: [...row.seen, data.n] }
          },
        },
      })
    await append(store, ['s1', 'c1', 1], ['s2', 'c1', 2], ['s3', 'c1', 3], ['s4', 'c1', '4'], ['s5', 'c1', 5])
    const first = createEngine({ store, subscriptions: [refuse(true)], logger: silent })
    await first.start()
    expect(await codeOf(first.drain())).toBe('SUBSCRIPTION_BLOCKED')
    await first.stop()
    await using running = createEngine({ store, subscriptions: [refuse(false)], logger: silent })
    await running.start()
    const operator = createOperator({ store, subscriptions: [refuse(false)], by: 'ada' })
    expect(await operator.dryRun('gathered', { letter: 4 })).toMatchObject({ totals: { fail: 1 } })
    await operator.redrive('gathered', { letter: 4 }, { reason: 'too early' })
    await running.drain().catch(() => undefined)
    expect(await seen(running, 'c1')).toEqual([1])
    await operator.redrive('gathered', { lane: 'c1' }, { reason: 'fixed' })
    await running.drain().catch(() => undefined)
    await operator.redrive('gathered', { letter: 4 }, { reason: 'fixed' })
    await running.drain()
    expect(await seen(running, 'c1')).toEqual([1, 2, 3, 4, 5])
    expect(await running.verify('gathered')).toMatchObject({ ok: true })
  })

  it('an event that can not be read can be discarded or edited, and everything behind it goes on', async () => {
    await using place = await open()
    const { store } = place
    await append(store, ['s1', 'c1', 1], ['s2', 'c1', 'x'], ['s3', 'c1', 'y'], ['s4', 'c1', 4])
    await using running = await start(store, broken)
    const operator = operatorOf(store, broken)
    expect(await codeOf(running.drain())).toBe('SUBSCRIPTION_BLOCKED')
    await operator.discard('gathered', { letter: 2 }, { reason: 'not one of ours' })
    expect(await codeOf(running.drain())).toBe('SUBSCRIPTION_BLOCKED')
    expect(await seen(running, 'c1')).toEqual([1])
    await operator.revise({ subscription: 'gathered', position: 3 }, { data: { customer: 'c1', n: 3 } }, 'typing error')
    await operator.redrive('gathered', { letter: 3 }, { reason: 'edited' })
    await running.drain()
    expect(await seen(running, 'c1')).toEqual([1, 3, 4])
    expect(await running.verify('gathered')).toMatchObject({ ok: true, counts: { applied: 3, discarded: 1, held: 0 } })
  })

  it('an edit that gives an event another row never puts it behind later events of that row', async () => {
    await using place = await open()
    const { store } = place
    const refusing = defineProjection('gathered', {
      events: fixed.events,
      key: ({ data }) => data.customer,
      initial: () => ({ seen: [] as number[] }),
      on: {
        Noted: (row, { data }) => {
          if (data.customer === 'c1') throw new Error('no such customer')
          return { seen: [...row.seen, data.n] }
        },
      },
    })
    await append(store, ['s1', 'c2', 1], ['s2', 'c1', 2], ['s3', 'c2', 3], ['s4', 'c3', 4])
    await using running = createEngine({ store, subscriptions: [refusing], logger: silent })
    await running.start()
    const operator = createOperator({ store, subscriptions: [refusing], by: 'ada' })
    await running.drain()
    const letter = { subscription: 'gathered', position: 2 }
    await operator.revise(letter, { data: { customer: 'c2', n: 2 } }, 'the wrong customer')
    const dry = await operator.dryRun('gathered', { letter: 2 })
    expect(dry.lanes[0]?.letters[0]?.outcome).toMatchObject({ outcome: 'failed', failure: { code: 'ROW_AHEAD' } })
    await operator.redrive('gathered', { letter: 2 }, { reason: 'edited' })
    await running.drain()
    expect(await seen(running, 'c2')).toEqual([1, 3])
    expect(await running.letters({ subscription: 'gathered', status: 'parked' })).toHaveLength(1)
    expect(await running.verify('gathered')).toMatchObject({ ok: true })
    // A row of which no later event was applied takes it.
    await operator.revise(letter, { data: { customer: 'c4', n: 2 } }, 'that one')
    expect(await operator.dryRun('gathered', { letter: 2 })).toMatchObject({ totals: { pass: 1 } })
    await operator.redrive('gathered', { letter: 2 }, { reason: 'edited' })
    await running.drain()
    expect(await seen(running, 'c4')).toEqual([2])
    expect(await running.verify('gathered')).toMatchObject({ ok: true, counts: { held: 0 } })
  })

  it('a dry run of several lanes that end in one row says what the redrive then does', async () => {
    await using place = await open()
    const { store } = place
    const bad = new Set([1, 5])
    const refusing = defineProjection('gathered', {
      events: fixed.events,
      key: ({ data }) => data.customer,
      initial: () => ({ seen: [] as number[] }),
      on: {
        Noted: (row, { data }) => {
          if (bad.has(data.n)) throw new Error('not yet')
          return { seen: [...row.seen, data.n] }
        },
      },
    })
    await append(store, ['s', 'a', 1], ['s', 'b', 5], ['s', 'a', 10])
    await using running = createEngine({ store, subscriptions: [refusing], logger: silent })
    await running.start()
    await running.drain()
    const operator = createOperator({ store, subscriptions: [refusing], by: 'ada' })
    await operator.revise({ subscription: 'gathered', position: 3 }, { data: { customer: 'r', n: 10 } }, 'that row')
    await operator.revise({ subscription: 'gathered', position: 2 }, { data: { customer: 'r', n: 55 } }, 'that row')
    bad.clear()
    // Lane a comes first, with position 3 into the row; position 2 of lane b would follow it.
    expect((await operator.dryRun('gathered', { all: true })).totals).toMatchObject({ pass: 2, fail: 1 })
    const { redrive } = await operator.redrive('gathered', { all: true }, { reason: 'edited' })
    await running.drain()
    expect((await operator.findRedrive(redrive.id)).byState).toMatchObject({ done: 1, failed: 1 })
    expect(await seen(running, 'r')).toEqual([10])
    expect(await running.verify('gathered')).toMatchObject({ ok: true })
  })

  it('the lane of an event that can not be read can be named, like any other', async () => {
    await using place = await open()
    const { store } = place
    await append(store, ['s1', 'c1', 'x'], ['s2', 'c1', 2])
    await using running = await start(store, broken)
    expect(await codeOf(running.drain())).toBe('SUBSCRIPTION_BLOCKED')
    const operator = operatorOf(store, broken)
    const [letter] = await operator.letters({ subscription: 'gathered' })
    const lane = letter?.lane ?? 'none'
    expect(await operator.letters({ subscription: 'gathered', lane })).toHaveLength(1)
    expect(await operator.select('gathered', 'discard', { lane })).toMatchObject({ lanes: 1 })
    await operator.discard('gathered', { lane }, { reason: 'not one of ours' })
    await running.drain()
    expect(await seen(running, 'c1')).toEqual([2])
  })

  it('a rebuild that can not read an event says so, and goes through when the live version has discarded it', async () => {
    await using place = await open()
    const { store } = place
    await append(store, ['s1', 'c1', 1], ['s2', 'c1', 'x'], ['s3', 'c1', 3])
    await using running = await start(store, broken)
    expect(await codeOf(running.drain())).toBe('SUBSCRIPTION_BLOCKED')
    const second = defineProjection('gathered', {
      events: broken.events,
      version: 2,
      key: ({ data }) => data.customer,
      initial: () => ({ seen: [] as number[] }),
      on: { Noted: (row, { data }) => ({ seen: [...row.seen, data.n * 10] }) },
    })
    await expect(rebuild(second, { store, by: 'ada', reason: 'tens', logger: silent })).rejects.toMatchObject({
      code: 'SUBSCRIPTION_BLOCKED',
      message: expect.stringContaining('if gathered holds it too, discard it there'),
    })
    await operatorOf(store, broken).discard('gathered', { letter: 2 }, { reason: 'not one of ours' })
    await running.drain()
    await dropRebuild('gathered', { store, by: 'ada', reason: 'again', version: 2 })
    expect((await rebuild(second, { store, by: 'ada', reason: 'tens', logger: silent })).end).toBe('level')
    await switchRebuild(second, { store, by: 'ada', reason: 'tens', wait: '30s' })
    expect((await read(store, second).get('c1'))?.data.seen).toEqual([10, 30])
  })

  it('keys that look alike have nothing to do with what can not be read', async () => {
    await using place = await open()
    const { store } = place
    // A stream called like a row, which is held for a reason of its own.
    await append(store, ['c1', 'c1', 'x'], ['c1', 'c1', 2], ['c2', 'c2', 3])
    await using running = await start(store, broken)
    expect(await codeOf(running.drain())).toBe('SUBSCRIPTION_BLOCKED')
    const operator = operatorOf(store, broken)
    await operator.discard('gathered', { all: true }, { reason: 'test' })
    await running.drain()
    expect(await seen(running, 'c1')).toEqual([2])
    expect(await seen(running, 'c2')).toEqual([3])
    expect(await running.verify('gathered')).toMatchObject({ ok: true })
  })
})

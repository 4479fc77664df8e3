import { setImmediate } from 'node:timers/promises'
import { createEngine, definePolicy, type HoldfastError, park, type Redrive, type Store } from 'holdfast'
import { expect, it, vi } from 'vitest'
import { countsOf, credited } from '../fixtures.ts'
import { codeOf } from '../operator/scene.ts'
import { type BreakerScene, createBreakerScene, patience, silent } from './breaker-scene.ts'
import { describeTwoStores, type TwoStores } from './two-stores.ts'

const why = { reason: 'the endpoint is gone for good' }

/** Lanes `x/1`, `x/2`, … with so many events each, all of which wait for the breaker of their endpoint. */
async function createWaiting(stores: TwoStores, lanes: number, events: number): Promise<BreakerScene> {
  const scene = await createBreakerScene(stores)
  await scene.operator.isolateBreaker('notify:x', 'it is gone', { new: true })
  for (let i = 1; i <= lanes; i++)
    await scene.log.append(
      `x/${i}`,
      Array.from({ length: events }, (_, n) => credited(n + 1)),
    )
  await scene.engine.start()
  await settled(scene, lanes)
  return scene
}

/** So many lanes wait, and no other is held. */
async function settled({ lanes }: BreakerScene, count: number): Promise<void> {
  await vi.waitFor(async () => {
    const held = await lanes()
    expect(held.map(({ status, breaker }) => [status, breaker])).toEqual(
      Array.from({ length: count }, () => ['waiting', 'notify:x']),
    )
  }, patience)
}

async function positionOf({ lanes }: BreakerScene, lane: string): Promise<number> {
  return (await lanes()).find((one) => one.lane === lane)?.headPosition ?? 0
}

async function ended({ operator }: BreakerScene, { id }: Pick<Redrive, 'id'>): Promise<Redrive> {
  return vi.waitFor(async () => {
    const redrive = await operator.findRedrive(id)
    expect(redrive.status).not.toBe('running')
    return redrive
  }, patience)
}

/** Does something after letters were loaded, and before their owner has them. */
function whenLoaded(store: Store, work: (lanes: readonly string[]) => Promise<void>): Store {
  return {
    ...store,
    letters: {
      ...store.letters,
      queues: async (...asked) => {
        const queues = await store.letters.queues(...asked)
        await work(asked[2])
        return queues
      },
    },
  }
}

describeTwoStores('a lane that waits for a breaker', (open) => {
  it('can be discarded and resolved, letter by letter, until it flows', async () => {
    await using stores = await open()
    await using scene = await createWaiting(stores, 2, 2)
    const { operator, engine, calls } = scene
    expect(await operator.select('notify', 'discard', { all: true })).toMatchObject({ lanes: 2 })
    const dry = await operator.dryRun('notify', { lane: 'x/1' }, { act: 'discard' })
    expect(dry.lanes).toMatchObject([{ lane: 'x/1', letters: [{ outcome: { outcome: 'ignored' } }, {}] }])

    const first = await operator.discard('notify', { lane: 'x/1' }, why)
    // Its next letter meets the breaker, and waits as the first one did.
    expect(await ended(scene, first.redrive)).toMatchObject({ status: 'stopped', letters: 1, byState: { deferred: 1 } })
    await settled(scene, 2)
    const second = await operator.resolve('notify', { letter: await positionOf(scene, 'x/1') }, why)
    expect(await ended(scene, second.redrive)).toMatchObject({ status: 'done', letters: 1, byState: { done: 1 } })
    await settled(scene, 1)
    for (const _ of [1, 2]) {
      await settled(scene, 1)
      const asked = await operator.discard('notify', { all: true }, why)
      await ended(scene, asked.redrive)
    }
    await settled(scene, 0)
    expect(calls).toEqual([])
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 0, held: 0, discarded: 4 })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
    // It flows: what comes now waits for itself.
    await scene.log.append('x/1', [credited(9)])
    await settled(scene, 1)
  })

  it('is not redriven, and the ways out are told', async () => {
    await using stores = await open()
    await using scene = await createWaiting(stores, 1, 1)
    const { operator } = scene
    for (const selection of [{ lane: 'x/1' }, { letter: await positionOf(scene, 'x/1') }]) {
      const error = await operator.redrive('notify', selection, why).then(
        () => undefined,
        (thrown: unknown) => thrown as HoldfastError,
      )
      expect(error?.code).toBe('REDRIVE_NOTHING')
      expect(error?.hint).toMatch(/reset the breaker/i)
      expect(error?.hint).toMatch(/discard, resolve or edit/)
    }
    expect(await codeOf(operator.redrive('notify', { all: true }, why))).toBe('REDRIVE_NOTHING')
    expect(await codeOf(operator.skip('notify', { lane: 'x/1' }, why))).toBe('REDRIVE_NOTHING')
  })

  it('can be edited, and the edited data is what is tried when the breaker closes', async () => {
    await using stores = await open()
    await using scene = await createWaiting(stores, 2, 2)
    const { operator, engine, endpoint, callsOf } = scene
    const name = async (lane: string) => ({ subscription: 'notify', position: await positionOf(scene, lane) })
    await operator.revise(await name('x/1'), { data: { amount: 10 } }, 'typo')
    await operator.revise(await name('x/2'), { data: { amount: 20 } }, 'typo')
    await operator.unrevise(await name('x/2'), 'it was right')
    endpoint.isDown = false
    await operator.resetBreaker('notify:x', 'it is back')
    await vi.waitFor(async () => expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 4 }), patience)
    expect([callsOf('x/1'), callsOf('x/2')]).toEqual([
      [10, 2],
      [1, 2],
    ])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
    // The owner was not put off by it.
    expect((await engine.status()).subscriptions[0]?.fenced).toBe(0)
  })

  it('can not be edited from the moment on in which its letters are loaded', async () => {
    await using stores = await open()
    const codes: string[] = []
    const edit = async (lanes: readonly string[]) => {
      for (const lane of lanes) {
        const position = await positionOf(scene, lane)
        codes.push(
          await codeOf(scene.operator.revise({ subscription: 'notify', position }, { data: { amount: 7 } }, 'x')),
        )
      }
    }
    await using scene = await createWaiting({ ...stores, store: whenLoaded(stores.store, edit) }, 2, 1)
    scene.endpoint.isDown = false
    await scene.operator.resetBreaker('notify:x', 'it is back')
    await settled(scene, 0)
    expect(codes).toContain('LETTER_BUSY')
    expect(new Set(codes)).toEqual(new Set(['LETTER_BUSY']))
    expect(scene.calls.map(({ amount }) => amount)).toEqual([1, 1])
  })

  it('is tried with the edit that was accepted last, however close the edit comes to its release', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores)
    const { operator, engine, endpoint, callsOf, log } = scene
    endpoint.isDown = false
    await operator.isolateBreaker('notify:x', 'it is gone', { new: true })
    await engine.start()
    const lanes = 8
    for (let round = 1; round <= 5; round++) {
      for (let i = 1; i <= lanes; i++) await log.append(`x/${round}.${i}`, [credited(0)])
      await settled(scene, lanes)
      const positions = (await scene.lanes()).map(({ lane, headPosition }) => ({ lane, position: headPosition }))
      await operator.resetBreaker('notify:x', 'it is back')
      const accepted = await Promise.all(
        positions.map(async ({ lane, position }) => {
          let last = 0
          // Until it is refused: because it is about to be tried, or was.
          for (;;) {
            const edit = operator.revise({ subscription: 'notify', position }, { data: { amount: last + 1 } }, 'typo')
            const code = await codeOf(edit)
            if (code !== 'nothing was thrown') return { lane, last, code }
            last++
            // On SQLite nothing else would ever have its turn.
            await setImmediate()
          }
        }),
      )
      await settled(scene, 0)
      for (const { code } of accepted) expect(['LETTER_BUSY', 'LETTER_ENDED']).toContain(code)
      expect(accepted.map(({ lane }) => [lane, callsOf(lane)])).toEqual(
        accepted.map(({ lane, last }) => [lane, [last]]),
      )
      await operator.isolateBreaker('notify:x', 'once more')
      await vi.waitFor(async () => {
        await log.append('x/0', [credited(0)])
        expect((await scene.lanes()).length).toBeGreaterThan(0)
      }, patience)
      await ended(scene, (await operator.discard('notify', { lane: 'x/0' }, why)).redrive)
      while ((await scene.lanes()).length > 0)
        await ended(scene, (await operator.discard('notify', { lane: 'x/0' }, why)).redrive)
    }
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  }, 120_000)
})

describeTwoStores('a redrive whose lanes meet an open breaker', (open) => {
  /** Parked lanes of an endpoint that is isolated since. */
  async function createParked(stores: TwoStores, lanes: number): Promise<BreakerScene> {
    const scene = await createBreakerScene(stores, {
      breaker: { opens: { failures: 1_000 }, cooldown: '10m', key: () => 'x' },
      failure: definePolicy({ transient: park, outage: false }),
    })
    for (let i = 1; i <= lanes; i++) await scene.log.append(`x/${i}`, [credited(1), credited(2)])
    await scene.engine.start()
    await vi.waitFor(
      async () => expect((await scene.lanes()).map(({ status }) => status)).toEqual(Array(lanes).fill('parked')),
      patience,
    )
    await scene.operator.isolateBreaker('notify:x', 'it is down')
    // Known to the owner from then on.
    let sent = 0
    await vi.waitFor(async () => {
      await scene.log.append(`y/${++sent}`, [credited(1)])
      expect((await scene.lanes()).some(({ status }) => status === 'waiting')).toBe(true)
    }, patience)
    return scene
  }

  it('ends as stopped, and the lanes go on by themselves when it closes', async () => {
    await using stores = await open()
    await using scene = await createParked(stores, 3)
    const { operator, endpoint, engine, callsOf } = scene
    const asked = await operator.redrive('notify', { filter: { status: 'parked' } }, { reason: 'it is fixed' })
    const parked = asked.redrive.lanes
    const redrive = await ended(scene, asked.redrive)
    expect(redrive).toMatchObject({ status: 'stopped', letters: 0, byState: { deferred: parked, running: 0, done: 0 } })
    expect(redrive.endedReason).toMatch(/wait for an open breaker/)
    for (const { status, redrive: id } of await scene.lanes()) expect([status, id]).toEqual(['waiting', undefined])
    endpoint.isDown = false
    await operator.resetBreaker('notify:x', 'it is back')
    await settled(scene, 0)
    for (const key of ['x/1', 'x/2', 'x/3']) expect(callsOf(key).slice(-2)).toEqual([1, 2])
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
    expect(await operator.findRedrive(redrive.id)).toMatchObject({ status: 'stopped', byState: { deferred: parked } })
  })

  it('does not go on to the next stage of a canary', async () => {
    await using stores = await open()
    await using scene = await createParked(stores, 4)
    const { operator } = scene
    const asked = await operator.redrive('notify', { filter: { status: 'parked' } }, { reason: 'try', canary: true })
    const redrive = await ended(scene, asked.redrive)
    expect(redrive).toMatchObject({ status: 'stopped', byState: { deferred: 1, left: asked.redrive.lanes - 1 } })
  })

  it('leaves no lane busy: one that was under way and waits can be discarded, also after a cancel', async () => {
    await using stores = await open()
    await using scene = await createParked(stores, 1)
    const { operator } = scene
    const asked = await operator.redrive('notify', { lane: 'x/1' }, { reason: 'try' })
    const statusOf = async () => (await scene.lanes()).find(({ lane }) => lane === 'x/1')?.status
    // It was begun, and met the breaker.
    await vi.waitFor(async () => expect(await statusOf()).toBe('waiting'), patience)
    await operator.cancel(asked.redrive.id, 'no')
    const position = await positionOf(scene, 'x/1')
    await operator.discard('notify', { lane: 'x/1' }, why)
    await vi.waitFor(async () => {
      const { letter } = await operator.letter({ subscription: 'notify', position })
      expect(letter).toMatchObject({ status: 'discarded', endedBy: 'ada' })
    }, patience)
  })
})

describeTwoStores('a letter that meets the breaker of its whole handler', (open) => {
  it.for(['key', 'partition'] as const)(
    'waits by itself, so that its redrive ends and it can be discarded (order: %s)',
    async (order) => {
      await using stores = await open()
      await using scene = await createBreakerScene(stores, {
        order,
        breaker: { opens: { failures: 100 }, cooldown: '10m' },
        failure: definePolicy({ transient: park, outage: false }),
      })
      const { operator, endpoint, calls } = scene
      await scene.log.append('x', [credited(1)])
      await scene.engine.start()
      await vi.waitFor(async () => expect(await scene.lanes()).toMatchObject([{ status: 'parked' }]), patience)
      // Another process, which reads the breaker before its first call; this one has read it less than a second ago.
      await scene.engine.stop()
      await operator.isolateBreaker('notify', 'maintenance')
      await using engine = createEngine({ store: stores.store, subscriptions: [scene.handler], logger: silent })
      await engine.start()
      const redriven = await operator.redrive('notify', { all: true }, why)
      expect(await ended(scene, redriven.redrive)).toMatchObject({ status: 'stopped', byState: { deferred: 1 } })
      await vi.waitFor(
        async () => expect(await scene.lanes()).toMatchObject([{ status: 'waiting', breaker: 'notify' }]),
        patience,
      )
      expect(calls).toHaveLength(1)
      const discarded = await operator.discard('notify', { all: true }, why)
      expect(await ended(scene, discarded.redrive)).toMatchObject({ status: 'done', letters: 1 })
      // What comes later waits for the breaker as well, and continues when it is reset.
      endpoint.isDown = false
      await scene.log.append('x', [credited(2)])
      await operator.resetBreaker('notify', 'over')
      await engine.drain()
      expect(scene.callsOf('x')).toEqual([1, 2])
      expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 1, discarded: 1, held: 0 } })
    },
  )

  it('does not keep the others of its redrive: all of them end, and can be discarded', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores, {
      breaker: { opens: { failures: 1_000 }, cooldown: '10m' },
      failure: definePolicy({ transient: park, outage: false }),
      concurrency: 2,
    })
    const { operator } = scene
    const lanes = 20
    for (let i = 0; i < lanes; i++) await scene.log.append(`x/${i}`, [credited(1)])
    await scene.engine.start()
    await vi.waitFor(async () => {
      const held = await scene.lanes()
      expect(held.filter(({ status }) => status === 'parked')).toHaveLength(lanes)
    }, patience)
    await scene.engine.stop()
    await operator.isolateBreaker('notify', 'maintenance')
    await using engine = createEngine({ store: stores.store, subscriptions: [scene.handler], logger: silent })
    await engine.start()
    // Also while everything stands still for it already.
    await scene.log.append('y', [credited(1)])
    await vi.waitFor(async () => {
      const [status] = (await engine.status()).subscriptions
      expect(status?.state).toMatchObject({ state: 'blocked', by: 'breaker' })
    }, patience)
    const redriven = await operator.redrive('notify', { all: true }, why)
    expect(await ended(scene, redriven.redrive)).toMatchObject({ status: 'stopped', byState: { deferred: lanes } })
    const discarded = await operator.discard('notify', { all: true }, why)
    expect(await ended(scene, discarded.redrive)).toMatchObject({ status: 'done', letters: lanes })
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { discarded: lanes, held: 0 } })
  })
})

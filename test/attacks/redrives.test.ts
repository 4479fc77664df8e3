import { createLog, defineProjection, failure, type Store } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { bank, createWorld, credited, debited, heldOf, rowOf } from '../fixtures.ts'
import { fill, noting, run } from '../noting.ts'
import { ask, found } from '../redrive/asking.ts'

function buggy() {
  const bug = { isBad: (_amount: number) => true }
  const trails = defineProjection('trails', {
    events: bank,
    initial: () => ({ trail: [] as number[] }),
    on: {
      Credited: (row, { data }) => ({ trail: [...row.trail, data.amount] }),
      Debited: (row, { data }) => {
        if (bug.isBad(data.amount)) throw new RangeError('a bug')
        return { trail: [...row.trail, -data.amount] }
      },
    },
  })
  return { bug, trails, fix: () => (bug.isBad = () => false) }
}

/** Does something between what an owner was told to begin and its commit. */
function between(store: Store, work: () => Promise<unknown>): Store {
  let isDone = false
  return {
    ...store,
    letters: {
      ...store.letters,
      queues: async (...asked: Parameters<Store['letters']['queues']>) => {
        const queues = await store.letters.queues(...asked)
        if (!isDone) {
          isDone = true
          await work()
        }
        return queues
      },
    },
  }
}

function afterDue(store: Store, work: () => Promise<unknown>): Store {
  let isDone = false
  return {
    ...store,
    redrives: {
      ...store.redrives,
      due: async (...asked: Parameters<Store['redrives']['due']>) => {
        const tasks = await store.redrives.due(...asked)
        if (tasks.length > 0 && !isDone) {
          isDone = true
          await work()
        }
        return tasks
      },
    },
  }
}

const deed = { by: 'bob', act: 'x', target: 'x', reason: 'enough', at: 0, details: {} }

describe('a redrive that is cancelled while its lane is taken up', () => {
  it('is asked for again meanwhile, and the lane goes once', async () => {
    await using world = await createWorld()
    const { trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [debited(1), credited(2), credited(3), credited(4)])
    const holding = world.engine([trails])
    await world.settle(holding)
    await holding.stop()
    fix()
    const first = await ask(world.store, 'trails')
    let second = ''
    const store = between(world.store, async () => {
      await world.store.redrives.cancel(first, deed)
      second = await ask(world.store, 'trails')
    })
    const warned: unknown[] = []
    const logger = { info: () => undefined, warn: (what: unknown) => warned.push(what), error: () => undefined }
    const engine = world.engine([trails], { store, page: { events: 2 }, logger })
    await engine.start()
    await world.runtime.advance(10_000)
    expect(warned).toEqual([])
    expect(await heldOf(engine, 'trails')).toEqual([])
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [-1, 2, 3, 4] })
    expect(await found(world.store, first)).toMatchObject({ status: 'cancelled' })
    expect(await found(world.store, second)).toMatchObject({ status: 'done' })
    expect(await engine.verify('trails')).toMatchObject({ ok: true })
  })

  it('is asked for again meanwhile, and a handler goes on', async () => {
    await using world = await createWorld()
    await fill(world, ['a'], 4)
    let isDown = true
    const { handler, calls, callsOf } = noting(world, () => {
      if (isDown) throw failure.permanent('no')
    })
    const holding = world.engine([handler])
    await run(world, holding, 5_000)
    await holding.stop()
    isDown = false
    calls.splice(0)
    const first = await ask(world.store, 'notify')
    let second = ''
    const store = afterDue(world.store, async () => {
      await world.store.redrives.cancel(first, deed)
      second = await ask(world.store, 'notify')
    })
    const engine = world.engine([handler], { store })
    await engine.start()
    await world.runtime.advance(60_000)
    expect(callsOf('a')).toEqual([1, 2, 3, 4])
    expect(await found(world.store, second)).toMatchObject({ status: 'done' })
    expect(await engine.verify('notify')).toMatchObject({ ok: true })
  })

  it('and revised then: the revision is what is tried', async () => {
    await using world = await createWorld()
    const { trails, fix } = buggy()
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [debited(1), credited(2)])
    const holding = world.engine([trails])
    await world.settle(holding)
    await holding.stop()
    fix()
    const first = await ask(world.store, 'trails')
    const letter = { subscription: 'trails', position: 1 }
    const store = between(world.store, async () => {
      await world.store.redrives.cancel(first, deed)
      expect(await world.store.letters.revise(letter, '{"amount":7}', deed)).toMatchObject({ outcome: 'revised' })
    })
    const engine = world.engine([trails], { store })
    await engine.start()
    await world.runtime.advance(10_000)
    // It was cancelled before it had begun, so it is as it was, with what is tried next.
    expect(await heldOf(engine, 'trails')).toMatchObject([{ status: 'parked', revision: { body: '{"amount":7}' } }, {}])
    expect(await engine.verify('trails')).toMatchObject({ ok: true, differences: [] })
    await ask(world.store, 'trails')
    await log.append('a', [credited(3)])
    await world.runtime.advance(10_000)
    expect((await rowOf(engine, 'a', trails))?.data).toEqual({ trail: [-7, 2, 3] })
    expect(await engine.verify('trails')).toMatchObject({ ok: true, differences: [] })
  })
})

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { countsOf, createWorld, heldOf, rowOf } from '../fixtures.ts'
import {
  createLog,
  defineEvents,
  defineProjection,
  defineSubscription,
  type Store,
  StoreError,
} from '../../src/index.ts'
import { createScriptedSource } from '../../src/testing/source.ts'

// The engine against a model of a few lines, while calls to the store fail before and after their effect and engines restart.

const number = z.object({ n: z.number() })
const events = defineEvents({
  Added: number,
  AddedSlowly: number.refine(async ({ n }) => n >= 0),
  Poison: number,
  Unchanged: number,
  Skipped: number,
})

/** Remembers the order in which it was told. */
const trails = defineProjection('trails', {
  events,
  initial: () => ({ trail: [] as number[] }),
  on: {
    Added: (row, { data }) => ({ trail: [...row.trail, data.n] }),
    AddedSlowly: (row, { data }) => ({ trail: [...row.trail, data.n] }),
    Poison: () => {
      throw new Error('poison')
    },
    Unchanged: (row) => row,
  },
})

const types = ['Added', 'Added', 'Added', 'AddedSlowly', 'Unchanged', 'Skipped', 'Poison', 'Unheard'] as const
type Type = (typeof types)[number]
type Unknown = 'ignore' | 'hold'

const isHeld = (type: Type, unknown: Unknown) => type === 'Poison' || (type === 'Unheard' && unknown === 'hold')
const isFiltered = (type: Type) => type === 'Skipped' || type === 'Unheard'
const isAdded = (type: Type) => type === 'Added' || type === 'AddedSlowly'

/** Fails the calls that the plan says, for a while; then the store is well again. */
function failing(store: Store, plan: readonly ('before' | 'after' | 'no')[]): Store {
  let calls = 0
  const faulted = async <T>(call: () => Promise<T>): Promise<T> => {
    const fault = calls < 24 ? plan[calls++ % plan.length] : 'no'
    if (fault === 'before') throw new StoreError('STORE_UNAVAILABLE', 'before')
    const result = await call()
    if (fault === 'after') throw new StoreError('STORE_UNAVAILABLE', 'after')
    return result
  }
  const { subscriptions, rows, letters } = store
  return {
    ...store,
    subscriptions: { ...subscriptions, commit: (commit) => faulted(() => subscriptions.commit(commit)) },
    rows: { ...rows, load: (...args) => faulted(() => rows.load(...args)) },
    letters: { ...letters, queues: (...args) => faulted(() => letters.queues(...args)) },
  }
}

const faults = fc.array(fc.constantFrom('before', 'after', 'no', 'no', 'no'), { minLength: 1, maxLength: 8 })
const plans = faults.map((plan) => [...plan, 'no' as const, 'no' as const])
const restarts = fc.array(fc.nat(50), { maxLength: 3 })
const unknowns = fc.constantFrom<Unknown>('ignore', 'hold')
const pages = fc.integer({ min: 1, max: 6 })

describe('whatever fails and whenever it restarts, the engine does what the model does', () => {
  it('on the log', { timeout: 120_000 }, async () => {
    const step = fc.record({ key: fc.constantFrom('a', 'b'), type: fc.constantFrom(...types) })
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        pages,
        plans,
        restarts,
        unknowns,
        async (steps, page, plan, stops, unknown) => {
          await using world = await createWorld()
          const log = createLog({ store: world.store })
          const subscription = defineSubscription(trails, { unknown })
          const make = () =>
            world.engine([subscription], {
              store: failing(world.store, plan),
              page: { events: page },
              cacheBytes: page % 2 ? 0 : 1_000_000,
            })
          let engine = make()
          await engine.start()
          for (const [i, { key, type }] of steps.entries()) {
            await log.append(key, [{ type, data: { n: i } }])
            if (!stops.includes(i)) continue
            await engine.stop()
            engine = make()
            await engine.start()
          }
          await world.runtime.advance(200_000)
          // Asks the store itself, which never fails.
          const asked = world.engine([subscription])

          for (const key of ['a', 'b']) {
            const own = steps.map((taken, i) => ({ ...taken, i })).filter((taken) => taken.key === key)
            const subscribed = own.filter(({ type }) => !isFiltered(type) || isHeld(type, unknown))
            const stop = subscribed.findIndex(({ type }) => isHeld(type, unknown))
            const flowed = stop < 0 ? subscribed : subscribed.slice(0, stop)
            const trail = flowed.filter(({ type }) => isAdded(type)).map(({ i }) => i)
            expect((await rowOf(asked, key, trails))?.data).toEqual(trail.length > 0 ? { trail } : undefined)
            const letters = (await heldOf(asked, 'trails')).filter(({ lane }) => lane === key)
            expect(letters.map(({ event }) => JSON.parse(String(event.body)) as unknown)).toEqual(
              subscribed.slice(flowed.length).map(({ i }) => ({ n: i })),
            )
          }
          const verification = await asked.verify('trails')
          expect(verification.differences).toEqual([])
          expect(verification.events).toBe(steps.length)
        },
      ),
      { numRuns: 40 },
    )
  })

  it('on a source that repeats, reorders and withholds', { timeout: 120_000 }, async () => {
    const delivery = fc.record({ key: fc.constantFrom('a', 'b'), version: fc.integer({ min: 1, max: 10 }) })
    const typing = fc.array(fc.constantFrom(...types), { minLength: 10, maxLength: 20 })
    await fc.assert(
      fc.asyncProperty(
        fc.array(delivery, { maxLength: 60 }),
        typing,
        pages,
        plans,
        restarts,
        unknowns,
        async (script, typed, page, plan, stops, unknown) => {
          await using world = await createWorld()
          const source = createScriptedSource()
          const subscription = defineSubscription(trails, { source, unknown })
          const typeOf = (key: string, version: number) => typed[(version + key.length * 3) % typed.length] as Type
          const make = () =>
            world.engine([subscription], {
              store: failing(world.store, plan),
              page: { events: page },
            })
          let engine = make()
          await engine.start()
          for (const [i, { key, version }] of script.entries()) {
            source.deliver({ key, type: typeOf(key, version), version, data: { n: version } })
            if (i % 9 === 8) await world.runtime.advance(20_000)
            if (!stops.includes(i)) continue
            await engine.stop()
            engine = make()
            await engine.start()
          }
          await world.runtime.advance(200_000)
          // Asks the store itself, which never fails.
          const asked = world.engine([subscription])

          const expected = { applied: 0, duplicate: 0, filtered: 0, held: 0, discarded: 0 }
          for (const key of ['a', 'b']) {
            const arrived = new Set(script.filter((delivered) => delivered.key === key).map(({ version }) => version))
            expected.duplicate += script.filter((delivered) => delivered.key === key).length - arrived.size
            const trail: number[] = []
            let next = 1
            for (; arrived.has(next) && !isHeld(typeOf(key, next), unknown); next++) {
              const type = typeOf(key, next)
              expected[isFiltered(type) ? 'filtered' : 'applied']++
              if (isAdded(type)) trail.push(next)
            }
            expect((await rowOf(asked, key, trails))?.data).toEqual(trail.length > 0 ? { trail } : undefined)
            const behind = [...arrived].filter((version) => version >= next).toSorted((a, b) => a - b)
            expected.held += behind.length
            const letters = (await heldOf(asked, 'trails'))
              .filter(({ lane }) => lane === key)
              .toSorted((a, b) => a.sequence - b.sequence)
            const head = behind[0] === next ? 'parked' : 'waiting'
            expect(letters.map(({ sequence, status }) => [sequence, status])).toEqual(
              behind.map((version, i) => [version, i === 0 ? head : 'queued']),
            )
          }
          expect(await countsOf(asked, 'trails')).toEqual(expected)
        },
      ),
      { numRuns: 40 },
    )
  })
})

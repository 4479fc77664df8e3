import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defineEvents, defineProjection, defineSubscription } from 'holdfast'
import { createScriptedSource } from 'holdfast/testing'
import { z } from 'zod'
import { countsOf, createWorld, heldOf, rowOf } from '../fixtures.ts'
import { createMortal, type Mortal } from '../mortal.ts'
import { ask, found } from './asking.ts'

// The same against a source that repeats, reorders and withholds, where people also give up on versions that don't come.

const events = defineEvents({ Stepped: z.object({ n: z.number() }) })
const keys = ['a', 'b'] as const
const versions = 10

const key = fc.constantFrom(...keys)
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ act: fc.constant('deliver'), key, version: fc.integer({ min: 1, max: versions }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ act: fc.constantFrom('redrive', 'discard', 'resolve', 'skip', 'discard whole') }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('bug'), every: fc.integer({ min: 2, max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('die') }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('wait') }) },
)

describe('redrives where versions are missing', () => {
  it('apply each version once, in order, but for those that people gave up', { timeout: 240_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (script) => {
        await using world = await createWorld()
        let every = 3
        const trails = defineProjection('steps', {
          events,
          initial: () => ({ trail: [] as number[] }),
          on: {
            Stepped: (row, { data: { n } }) => {
              if (every > 0 && n % every === 0) throw new RangeError('a bug')
              return { trail: [...row.trail, n] }
            },
          },
          maxDeaths: 1_000,
        })
        const source = createScriptedSource()
        const subscription = defineSubscription(trails, { source })
        let delivered = 0
        const deliver = (lane: string, version: number) => {
          source.deliver({ key: lane, type: 'Stepped', version, data: { n: version } })
          delivered++
        }
        const make = async (): Promise<Mortal> => {
          const made = createMortal(world, [subscription], { page: { events: 4 } })
          await made.engine.start()
          await world.runtime.advance(300)
          return made
        }
        const asked: string[] = []
        // Where there is nothing to let go, nothing is asked for.
        const askFor = async (act: 'redrive' | 'discard' | 'resolve' | 'skip' | 'discard whole') => {
          const request =
            act === 'discard whole' ? ({ act: 'discard', through: Number.MAX_SAFE_INTEGER } as const) : { act }
          const id = await ask(world.store, 'steps', request).catch(() => undefined)
          if (id !== undefined) asked.push(id)
          return id !== undefined
        }
        let life = await make()
        for (const one of script) {
          if (one.act === 'deliver') deliver(one.key, one.version)
          else if (one.act === 'bug') every = one.every
          else if (one.act === 'wait') await world.runtime.advance(300)
          else if (one.act === 'die') {
            life.die()
            await world.runtime.advance(11_000)
            life = await make()
          } else await askFor(one.act)
        }
        // Everything is mended, and comes after all.
        life.die()
        every = 0
        for (const lane of keys) for (let version = 1; version <= versions; version++) deliver(lane, version)
        await world.runtime.advance(11_000)
        const last = world.engine([subscription])
        await last.start()
        await world.runtime.advance(3_000)
        await askFor('redrive')
        await world.runtime.advance(3_000)

        expect(await heldOf(last, 'steps')).toEqual([])
        const letters = await last.letters({ subscription: 'steps', limit: 10_000 })
        const skipped = new Set<string>()
        for (const id of asked) {
          const { status, act } = await found(world.store, id)
          expect(status).toBe('done')
          const over = act === 'skip' ? await world.store.redrives.lanes(id, undefined, 0, 10) : []
          for (const { lane, state } of over) if (state !== 'passed') skipped.add(lane)
        }
        for (const lane of keys) {
          const row = (await rowOf(last, lane, trails))?.data as { trail: number[] } | undefined
          const trail = row?.trail ?? []
          expect(trail).toEqual([...new Set(trail)].toSorted((x, y) => x - y))
          const leftOut = letters.filter((letter) => letter.lane === lane && letter.endedReason !== undefined)
          const known = new Set([...trail, ...leftOut.map(({ sequence }) => sequence)])
          expect(known.size).toBe(trail.length + leftOut.length)
          expect(known.size === versions || skipped.has(lane)).toBe(true)
        }
        const counts = await countsOf(last, 'steps')
        expect(Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0)).toBe(delivered)
        expect(counts?.held).toBe(0)
      }),
      { numRuns: 60 },
    )
  })
})

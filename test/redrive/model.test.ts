import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLog, defineEvents, defineHandler, definePolicy, defineProjection, failure, type Store } from 'holdfast'
import { z } from 'zod'
import { createWorld, heldOf, rowOf } from '../fixtures.ts'
import { createMortal, type Mortal } from '../mortal.ts'
import { ask, found } from './asking.ts'

// Redrives against a model of a few lines: lanes by chance, some of them poisoned, bugs that come and go, people who let go and leave out,
// and engines that die between any two commits. At the end everything is mended, and nothing may be missing, twice, or out of order.

const events = defineEvents({ Stepped: z.object({ n: z.number() }) })
const keys = ['a', 'b', 'c'] as const

type Step =
  | { readonly act: 'append'; readonly key: (typeof keys)[number]; readonly count: number }
  | {
      readonly act: 'redrive' | 'discard' | 'resolve'
      readonly key: (typeof keys)[number] | undefined
      readonly isWhole: boolean
    }
  | { readonly act: 'cancel' }
  | { readonly act: 'bug'; readonly every: number }
  | { readonly act: 'die'; readonly commits: number; readonly when: 'before' | 'after' }
  | { readonly act: 'wait'; readonly ms: number }

const key = fc.constantFrom(...keys)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ act: fc.constant('append'), key, count: fc.integer({ min: 1, max: 5 }) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      act: fc.constantFrom('redrive', 'redrive', 'discard', 'resolve'),
      key: fc.option(key, { nil: undefined }),
      isWhole: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('cancel') }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('bug'), every: fc.integer({ min: 2, max: 6 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant('die'),
      commits: fc.integer({ min: 1, max: 4 }),
      when: fc.constantFrom('before', 'after'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('wait'), ms: fc.constantFrom(10, 300, 1_000) }) },
)

/** A store whose owner dies at a commit, before it is made or after. */
function deadly(store: Store, plan: { left: number; when: 'before' | 'after' }, die: () => void): Store {
  const { subscriptions } = store
  return {
    ...store,
    subscriptions: {
      ...subscriptions,
      commit: async (commit) => {
        const isLast = --plan.left === 0
        if (isLast && plan.when === 'before') {
          die()
          return new Promise(() => undefined)
        }
        const outcome = await subscriptions.commit(commit)
        if (isLast) die()
        return outcome
      },
    },
  }
}

describe.for(['fold', 'handler'] as const)('redrives of a %s', (kind) => {
  it('lose nothing, repeat nothing and keep the order, whatever happens', { timeout: 240_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (script) => {
        await using world = await createWorld()
        const log = createLog({ store: world.store, events })
        let every = 3
        const isBad = (n: number) => every > 0 && n % every === 0
        /** What the handler did, by key. */
        const effects = new Map<string, number[]>(keys.map((one) => [one, []]))
        const trails = defineProjection('steps', {
          events,
          initial: () => ({ trail: [] as number[] }),
          on: {
            Stepped: (row, { data: { n } }) => {
              if (isBad(n)) throw new RangeError('a bug')
              return { trail: [...row.trail, n] }
            },
          },
          maxDeaths: 1_000,
        })
        const calls = defineHandler('steps', {
          events,
          on: {
            Stepped: ({ key: lane, data: { n } }) => {
              if (isBad(n)) throw failure.permanent('a bug')
              effects.get(lane)?.push(n)
            },
          },
          failure: definePolicy({ maxDeaths: 1_000 }),
        })
        const consumer = kind === 'fold' ? trails : calls
        const plan: { left: number; when: 'before' | 'after' } = { left: 0, when: 'before' }
        const asked: string[] = []
        const cancelled = new Set<string>()
        const written = new Map<string, number>()
        const make = async () => {
          const made: Mortal = createMortal(world, [consumer], {
            store: deadly(world.store, plan, () => made.die()),
            page: { events: 7 },
          })
          await made.engine.start()
          await world.runtime.advance(100)
          return made
        }
        let life = await make()
        let deaths = 1
        for (const one of script) {
          if (life.isDead) {
            await world.runtime.advance(11_000)
            life = await make()
            deaths++
          }
          if (one.act === 'append') {
            const before = written.get(one.key) ?? 0
            written.set(one.key, before + one.count)
            const drafts = Array.from({ length: one.count }, (_, i) => ({
              type: 'Stepped' as const,
              data: { n: before + i + 1 },
            }))
            await log.append(one.key, drafts)
          } else if (one.act === 'cancel') {
            const newest = asked.at(-1) ?? ''
            const deed = { by: 'bob', act: 'redrive.cancel', target: newest, reason: 'enough', at: 0, details: {} }
            if (await world.store.redrives.cancel(newest, deed)) cancelled.add(newest)
          } else if (one.act === 'bug') every = one.every
          else if (one.act === 'die') Object.assign(plan, { left: one.commits, when: one.when })
          else if (one.act === 'wait') await world.runtime.advance(one.ms)
          else {
            const through = one.isWhole && one.act !== 'redrive' ? Number.MAX_SAFE_INTEGER : undefined
            const request = { act: one.act, filter: one.key === undefined ? {} : { lane: one.key }, through }
            // Where nothing is held, nothing is asked for.
            const id = await ask(world.store, 'steps', request).catch(() => undefined)
            if (id !== undefined) asked.push(id)
          }
        }
        // Everything is mended, and let go.
        every = 0
        plan.left = 0
        if (!life.isDead) life.die()
        await world.runtime.advance(11_000)
        const last = world.engine([consumer])
        await last.start()
        await world.runtime.advance(2_000)
        const id = await ask(world.store, 'steps').catch(() => undefined)
        if (id !== undefined) asked.push(id)
        await world.runtime.advance(5_000)
        await last.drain()

        expect(await heldOf(last, 'steps')).toEqual([])
        const letters = await last.letters({ subscription: 'steps', limit: 10_000 })
        const leftOut = letters.filter(({ endedReason }) => endedReason !== undefined)
        for (const lane of keys) {
          const gone = new Set(leftOut.filter((letter) => letter.lane === lane).map(({ event }) => event.version))
          const all = Array.from({ length: written.get(lane) ?? 0 }, (_, i) => i + 1).filter((n) => !gone.has(n))
          const row = kind === 'fold' ? (await rowOf(last, lane, trails))?.data : { trail: effects.get(lane) }
          const { trail } = (row ?? { trail: [] }) as { trail: number[] }
          const done = trail.map((n) => all.indexOf(n))
          expect([...new Set(done)]).toEqual(all.map((_, i) => i))
          // What a handler did and had not committed when a process died is done again, and nothing else.
          const far = done.slice(1).map((place, i) => place - (done[i] as number))
          expect(far.filter((one) => one > 1)).toEqual([])
          expect(far.filter((one) => one < 1).length).toBeLessThanOrEqual(kind === 'fold' ? 0 : deaths)
        }
        const redrives = await Promise.all(asked.map((one) => found(world.store, one)))
        const statuses = asked.map((one) => (cancelled.has(one) ? 'cancelled' : 'done'))
        expect(redrives.map(({ status }) => status)).toEqual(statuses)
        expect(redrives.map(({ byState }) => byState.running + byState.pending)).toEqual(asked.map(() => 0))
        // The heads of started lanes and, for whole lanes, the letters behind them.
        const meant = new Set<number>()
        for (const { id: asking } of redrives.filter(({ act }) => act !== 'redrive')) {
          for (const { lane, state, position, until = position } of await world.store.redrives.lanes(
            asking,
            undefined,
            0,
            10,
          ))
            for (const { event } of letters.filter((letter) => letter.lane === lane && /done|failed/.test(state)))
              if (event.position >= position && event.position <= until) meant.add(event.position)
        }
        expect(new Set(leftOut.map(({ event }) => event.position))).toEqual(meant)
        const ended = letters.filter(({ endedAt }) => endedAt !== undefined).length
        expect(redrives.reduce((sum, one) => sum + one.letters, 0)).toBe(ended)
        expect((await last.verify('steps')).differences).toEqual([])
      }),
      { numRuns: 40 },
    )
  })
})

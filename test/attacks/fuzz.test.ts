import { expect, it } from 'vitest'
import {
  createLog,
  defineHandler,
  definePolicy,
  defineSubscription,
  type Engine,
  exponential,
  failure,
  retry,
} from '../../src/index.ts'
import { createRandom } from '../../src/testing/virtual.ts'
import { bank, countsOf, createWorld, credited } from '../fixtures.ts'
import { createMortal, type Mortal } from '../mortal.ts'
import { type Fault, faulty, keysOf, unreachable } from '../noting.ts'

// Everything at once, by chance: retries, skips, outages, breakers, pauses, restarts, deaths, commits whose end is not known, and events
// that come all the while. When all is well again, every event must have had its one outcome, in order.

const seeds = process.env['SEEDS']
  ? process.env['SEEDS'].split(',').map(Number)
  : Array.from({ length: 10 }, (_, i) => i + 1)

it.for(seeds)('every event comes to its end once and in order, whatever happens: seed %i', async (seed) => {
  await using world = await createWorld()
  const random = createRandom(seed * 7_919)
  const chance = (percent: number) => random.below(100) < percent
  const mayDie = seed % 2 === 0
  const order = seed % 5 === 0 ? 'none' : 'key'
  const partitions = [1, 3][seed % 2] as number
  const withBreaker = seed % 3 === 0
  let isDown = false
  let isAway = false
  let isFaulty = false
  let isCalm = false
  const keys = keysOf(9)
  const log = createLog({ store: world.store, events: bank })
  const appended = new Map<string, number>()
  let total = 0
  const append = async () => {
    const key = keys[random.below(keys.length)] as string
    const many = 1 + random.below(4)
    const from = appended.get(key) ?? 0
    await log.append(
      key,
      Array.from({ length: many }, (_, i) => credited(from + i + 1)),
    )
    appended.set(key, from + many)
    total += many
  }
  const over = new Map<string, Set<number>>()
  const times = new Map<string, number>()
  const under = new Map<string, string>()
  const wrong: string[] = []
  let lives = 0
  let fenced = 0
  const breaker = {
    key: ({ key }: { key: string }) => `end-${key.at(-1)}`,
    opens: { failures: 3 },
    cooldown: '5s',
  } as const
  const make = (life: { isDead: boolean }, who: string) =>
    defineSubscription(
      defineHandler('notify', {
        events: bank,
        order,
        timeout: '20s',
        concurrency: 1 + random.below(6),
        ...(withBreaker && { breaker }),
        dedupe: { by: 'id' },
        failure: definePolicy({
          // Nobody's fault here, and three by chance are enough to find a culprit.
          maxDeaths: 1_000,
          transient: retry({ unlimited: true, backoff: exponential('200ms', { cap: '8s', jitter: 0.5 }) }),
          outage: { lanes: 3, backoff: exponential('500ms', { cap: '10s' }) },
        }),
        on: {
          Credited: async ({ key, data: { amount } }): Promise<unknown> => {
            if (life.isDead) return new Promise(() => undefined)
            const done = over.get(key) ?? new Set()
            over.set(key, done)
            const name = `${key}/${amount}`
            if (order === 'key') {
              for (let i = 1; i < amount; i++) if (!done.has(i)) wrong.push(`${name} began before ${i} was over`)
              const other = under.get(key)
              if (other?.startsWith(who)) wrong.push(`${name} began beside ${other}`)
              under.set(key, `${who} ${name}`)
            }
            await world.runtime.timers.sleep(random.below(1_500))
            if (life.isDead) return new Promise(() => undefined)
            if (order === 'key') under.delete(key)
            if (isDown) throw failure.transient('no answer')
            if (!isCalm && chance(12)) throw failure.transient(`odd ${'abcdefgh'[random.below(8)]}`)
            done.add(amount)
            if (!isCalm && chance(2)) throw failure.skip('no need')
            return times.set(name, (times.get(name) ?? 0) + 1)
          },
        },
      }),
      { partitions },
    )
  const store = faulty(
    unreachable(world.store, () => isAway),
    (): Fault => (isFaulty && chance(40) ? (chance(50) ? 'before' : 'after') : undefined),
  )
  const begin = async () => {
    const state = { isDead: false }
    const life = createMortal(world, [make(state, `life-${++lives}`)], { store, lease: '5s' })
    const one = { life, state }
    life.engine.on('partition.fenced', () => fenced++)
    await life.engine.start()
    return one
  }
  const all: { life: Mortal; state: { isDead: boolean } }[] = [await begin()]
  let isPaused = false
  const operator = world.operator()
  const engineOf = (): Engine => (all[0] as { life: Mortal }).life.engine
  for (let step = 0; step < 60; step++) {
    for (let i = random.below(4); i > 0; i--) await append()
    if (chance(8)) isDown = !isDown
    if (chance(10)) isFaulty = !isFaulty
    if (chance(6)) isAway = !isAway
    if (chance(6) && !isAway) {
      isPaused = !isPaused
      await (isPaused ? operator.pause('notify', 'a test') : operator.resume('notify', 'a test'))
    }
    if (chance(6) && all.length < 3 && !isAway) all.push(await begin())
    if (chance(6) && all.length > 1) {
      const [one] = all.splice(random.below(all.length), 1)
      const stopping = one?.life.engine.stop({ timeout: '60s' })
      for (let i = 0; i < 80; i++) await world.runtime.advance(1_000)
      // What a process was not given the time to write down may be done again.
      if ((await stopping)?.forced) fenced++
    }
    if (mayDie && chance(8) && !isAway) {
      const [one] = all.splice(random.below(all.length), 1)
      if (one) {
        one.state.isDead = true
        one.life.die()
        under.clear()
      }
      if (all.length === 0) all.push(await begin())
    }
    for (let i = 0; i < 10; i++) {
      await world.runtime.advance(random.below(700))
    }
  }
  isDown = isAway = isFaulty = false
  isCalm = true
  if (isPaused) await operator.resume('notify', 'a test')
  for (let i = 0; i < 240; i++) await world.runtime.advance(1_000)
  const engine = engineOf()
  const verified = await engine.verify('notify')
  const counts = await countsOf(engine, 'notify')
  expect(verified).toMatchObject({ ok: true, events: total })
  expect(counts).toMatchObject({ held: 0 })
  expect((counts?.applied ?? 0) + (counts?.discarded ?? 0)).toBe(total)
  for (const key of keys) expect(over.get(key)?.size ?? 0).toBe(appended.get(key) ?? 0)
  const isExact = !mayDie && fenced === 0
  expect([...times].filter(([, n]) => isExact && n > 1)).toEqual([])
  expect(wrong).toEqual([])
})

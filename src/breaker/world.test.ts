import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { type BreakerProcess, createBreakerWorld, type Outage } from '../../test/breaker/world.ts'
import type { BreakerPass } from '../index.ts'

// Three processes, one store, any order of things; acts of one moment run side by side.

type Act =
  | { readonly act: 'enter' | 'isolate' | 'reset'; readonly process: number }
  | { readonly act: 'end'; readonly call: number; readonly as: 'success' | 'failure' | 'forget' }
  | { readonly act: 'outage'; readonly process: number; readonly outage: Outage }

const processes = fc.nat({ max: 2 })
const act = fc.oneof(
  { weight: 10, arbitrary: fc.record({ act: fc.constant('enter'), process: processes }) },
  {
    weight: 10,
    arbitrary: fc.record({
      act: fc.constant('end'),
      call: fc.nat(),
      as: fc.constantFrom('success', 'success', 'failure', 'failure', 'failure', 'forget'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constantFrom('isolate', 'reset', 'reset'), process: processes }) },
) as fc.Arbitrary<Act>
const outage = fc.record({
  act: fc.constant('outage'),
  process: processes,
  outage: fc.constantFrom('before', 'after', 'hang', undefined),
}) as fc.Arbitrary<Act>
const moments = (acts: fc.Arbitrary<Act>) =>
  fc.array(
    fc.record({
      acts: fc.array(acts, { minLength: 1, maxLength: 6, size: 'max' }),
      ms: fc.constantFrom(0, 100, 1_000, 3_000, 12_000),
    }),
    {
      maxLength: 40,
      size: 'max',
    },
  )
const options = fc.record({
  opens: fc.oneof(
    fc.record({ failures: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ rate: fc.constant(0.5), window: fc.constant(10_000), minimumCalls: fc.integer({ min: 1, max: 4 }) }),
  ),
  cooldown: fc.constantFrom(2_000, { initial: 1_000, factor: 3, cap: 9_000 }),
  probes: fc.integer({ min: 1, max: 2 }),
  successes: fc.integer({ min: 1, max: 2 }),
  quorum: fc.integer({ min: 1, max: 2 }),
})

interface Call {
  readonly from: BreakerProcess
  readonly pass: BreakerPass
  /** When it asked to go through, and when it was let. */
  readonly asked: number
  readonly at: number
}

interface World extends ReturnType<typeof createBreakerWorld> {
  readonly all: readonly BreakerProcess[]
  readonly calls: Set<Call>
}

async function live(
  given: Parameters<typeof createBreakerWorld>[0],
  sequence: readonly { readonly acts: readonly Act[]; readonly ms: number }[],
  check: (world: World, entries: readonly Call[]) => Promise<void>,
): Promise<World> {
  const created = createBreakerWorld(given)
  const all = ['a', 'b', 'c'].map((id) => created.start(id))
  const world: World = { ...created, all, calls: new Set() }
  const at = (index: number) => all[index] as BreakerProcess

  async function perform(todo: Act): Promise<Call | undefined> {
    switch (todo.act) {
      case 'enter': {
        const from = at(todo.process)
        const asked = world.runtime.clock.now()
        const pass = await from.breaker.enter()
        if (pass.entry === 'open') {
          expect(pass.afterMs).toBeGreaterThan(0)
          return undefined
        }
        const call = { from, pass, asked, at: world.runtime.clock.now() }
        world.calls.add(call)
        return call
      }
      case 'end': {
        const call = [...world.calls].at(-1 - (todo.call % 4))
        if (!call) return undefined
        world.calls.delete(call)
        const { breaker } = call.from
        await (todo.as === 'forget' ? breaker.forget(call.pass) : breaker.report(call.pass, todo.as === 'success'))
        return undefined
      }
      case 'outage':
        at(todo.process).outage = todo.outage
        return undefined
      // An operator is told when it can't be done, does not wait for ever, and may try again.
      case 'isolate':
      case 'reset': {
        const process = at(todo.process)
        const acted = process[todo.act]().catch(() => undefined)
        await Promise.race([acted, world.runtime.timers.sleep(5_000)])
        return undefined
      }
    }
  }

  for (const { acts, ms } of sequence) {
    let isDone = false
    const done = Promise.all(acts.map(perform))
    done.then(
      () => (isDone = true),
      () => (isDone = true),
    )
    while (!isDone) await world.advance(20)
    await check(
      world,
      (await done).filter((call) => call !== undefined),
    )
    await world.advance(ms)
  }
  return world
}

async function allIsWellAgain(world: World): Promise<void> {
  for (const one of world.all) one.outage = undefined
  await world.advance(6_000)
  for (const { breaker } of world.all) await breaker.enter()
  await world.advance(6_000)
  await world.all[0]?.isolate()
  await world.all[0]?.reset()
  await world.advance(1_000)
  for (const one of world.all) {
    expect(await one.succeed(3)).toEqual(['closed', 'closed', 'closed'])
    expect((await one.breaker.state()).state).toBe('closed')
  }
}

it('never has more probes under way than it may, and lets nobody through for long when it is open', async () => {
  const seen = new Map<string, number>()
  await fc.assert(
    fc.asyncProperty(options, moments(act), async (given, sequence) => {
      const world = await live(given, sequence, async ({ calls, store, runtime, history }, entries) => {
        const now = runtime.clock.now()
        const [breaker] = (await store.load(['mail'])).breakers
        const state = breaker?.state.state ?? 'closed'
        const record = breaker ? (JSON.parse(breaker.record) as { era: number }) : { era: 0 }
        const probes = [...calls].filter(
          ({ pass, at }) => pass.probe?.of === 'all' && pass.era === record.era && now - at < 60_000,
        )
        expect(state === 'half-open' ? probes.length : 0).toBeLessThanOrEqual(given.probes)
        // Within a second what others did is seen; so it must have been closed some time in that second.
        for (const { pass, asked, at } of entries) {
          if (pass.entry !== 'closed') continue
          const lately = history.filter((one, index) => one.at <= at && (history[index + 1]?.at ?? at) >= asked - 1_000)
          expect(lately.map((one) => one.state)).toContain('closed')
        }
      })
      expect(world.all.flatMap(({ errors }) => errors)).toEqual([])
      for (const change of world.all.flatMap(({ changes }) => changes)) seen.set(change, (seen.get(change) ?? 0) + 1)
      await allIsWellAgain(world)
    }),
    { numRuns: 150 },
  )
  // Or the rules had nothing to say.
  for (const change of ['closed → open', 'open → half-open', 'half-open → open', 'half-open → closed'])
    expect(seen.get(change)).toBeGreaterThan(20)
}, 60_000)

it('stops no process and keeps none shut for ever, however the store fails', async () => {
  await fc.assert(
    fc.asyncProperty(
      options,
      moments(fc.oneof({ weight: 8, arbitrary: act }, { weight: 1, arbitrary: outage })),
      async (given, sequence) => {
        const world = await live(given, sequence, async ({ calls, all, runtime }) => {
          const now = runtime.clock.now()
          for (const one of all) {
            const mine = [...calls].filter(
              ({ from, pass, at }) => from === one && pass.probe?.of === 'process' && now - at < 60_000,
            )
            const eras = Map.groupBy(mine, ({ pass }) => pass.ownEra)
            for (const probes of eras.values()) expect(probes.length).toBeLessThanOrEqual(given.probes)
          }
        })
        await allIsWellAgain(world)
      },
    ),
    { numRuns: 60 },
  )
}, 60_000)

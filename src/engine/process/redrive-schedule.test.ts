import { describe, expect, it } from 'vitest'
import { createWorld, type World } from '../../../test/fixtures.ts'
import { ask } from '../../../test/redrive/asking.ts'
import { begin, commitOf, hold, letter } from '../../testing/contracts/fixtures.ts'
import type { Store } from '../../store.ts'
import type { Runner } from './runner.ts'
import { RedriveSchedule } from './redrive-schedule.ts'

/** A minute, or about: no multiple of the longest nap, so that it shows who does not wait to the millisecond. */
const minute = 60_300
const everyMs = 10 * minute

/** Lanes of the subscription `s` that are parked now, and a process that owns its first partition and asks for them by a timetable. */
async function parked(world: World, options: { readonly maxAgeMs?: number; readonly store?: Store } = {}) {
  const { store = world.store, maxAgeMs } = options
  const lease = await begin(world.store.subscriptions)
  const park = async (...lanes: string[]) => {
    const held = lanes.map((lane) => letter(lane, 1, 'parked'))
    const writes = { held, lanes: held.map((one) => hold(one, 1)) }
    await world.store.subscriptions.commit({ ...commitOf(lease), ...writes, at: world.runtime.clock.now() })
  }
  await park('a', 'b')
  const lines: [string, object][] = []
  const line = (level: string) => (fields: object) => void lines.push([level, fields])
  const logger = { info: line('info'), warn: line('warn'), error: line('error') }
  const state = { isRunning: true, isOwner: true, pause: undefined as object | undefined }
  const runner = {
    subscription: { name: 's', redrive: { everyMs, maxAgeMs } },
    owns: (partition: number) => partition === 0 && state.isOwner,
    get isRunning() {
      return state.isRunning
    },
    get pause() {
      return state.pause
    },
  } as unknown as Runner
  const create = (...runners: Runner[]) => new RedriveSchedule(store, runners, world.runtime, logger)
  const asked = async () => (await world.store.redrives.list({ subscription: 's', limit: 100 })).toReversed()
  const askedAt = async () => (await asked()).map(({ at }) => (at - Date.UTC(2026, 0, 1)) / minute)
  /** As if the engine had been through with them, and they had failed. */
  const end = async () => {
    for (const { id } of await asked()) {
      const deed = { by: 'engine', act: 'cancel', target: id, reason: 'x', at: 0, details: {} }
      await world.store.redrives.cancel(id, deed)
    }
  }
  return { lines, state, runner, create, asked, askedAt, end, park }
}

describe('a timetable', () => {
  it('asks every so often, from its beginning on, for whatever is parked', async () => {
    await using world = await createWorld()
    const { runner, create, asked, askedAt, end, park, lines } = await parked(world)
    const timetable = create(runner)
    const running = timetable.run()
    await world.runtime.advance(everyMs - 1)
    expect(await askedAt()).toEqual([])
    await world.runtime.advance(1)
    expect(await askedAt()).toEqual([10])
    const [first] = await asked()
    expect(first).toMatchObject({
      act: 'redrive',
      filter: { status: 'parked' },
      by: 'schedule',
      reason: 'schedule',
      lanes: 2,
      rate: undefined,
      stages: [],
    })
    expect(first?.filter).not.toHaveProperty('since')
    expect(lines).toEqual([['info', { subscription: 's', redrive: first?.id, lanes: 2 }]])
    await end()
    await world.runtime.advance(everyMs)
    await park('c')
    await world.runtime.advance(everyMs)
    // The second is not over, so there is no third, though it has not all that is parked by now.
    expect(await askedAt()).toEqual([10, 20])
    timetable.stop()
    await running
    await end()
    await world.runtime.advance(2 * everyMs)
    expect(await askedAt()).toEqual([10, 20])
  })

  it('leaves out what is too old, and says nothing where nothing is left', async () => {
    await using world = await createWorld()
    const { runner, create, askedAt, asked, end, lines } = await parked(world, { maxAgeMs: 15 * minute })
    const timetable = create(runner)
    const running = timetable.run()
    await world.runtime.advance(everyMs)
    const since = Date.UTC(2026, 0, 1) - 5 * minute
    expect((await asked()).map(({ filter }) => filter)).toEqual([{ status: 'parked', since }])
    await end()
    await world.runtime.advance(3 * everyMs)
    expect(await askedAt()).toEqual([10])
    expect(lines).toHaveLength(1)
    timetable.stop()
    await running
  })

  it('counts from the last one that the store knows, not from a restart and not from what people ask for', async () => {
    await using world = await createWorld()
    const { runner, create, askedAt, end } = await parked(world)
    const first = create(runner)
    const gone = first.run()
    await world.runtime.advance(everyMs)
    await end()
    first.stop()
    await gone
    await world.runtime.advance(7 * minute)
    await ask(world.store, 's', {}, world.runtime.clock.now())
    await end()
    const second = create(runner)
    const running = second.run()
    await world.runtime.advance(3 * minute - 1)
    expect(await askedAt()).toEqual([10, 17])
    await world.runtime.advance(1)
    expect(await askedAt()).toEqual([10, 17, 20])
    second.stop()
    await running
  })

  it.for([
    ['does not run', { isRunning: false }],
    ['does not own the first partition', { isOwner: false }],
    ['is paused', { pause: { reason: 'x' } }],
  ] as const)('is silent while its subscription %s, and looks again when that is over', async ([, still]) => {
    await using world = await createWorld()
    const { runner, create, state, askedAt } = await parked(world)
    const before = { ...state }
    const timetable = create(runner)
    const running = timetable.run()
    await world.runtime.advance(minute)
    Object.assign(state, still)
    await world.runtime.advance(14 * minute)
    expect(await askedAt()).toEqual([])
    Object.assign(state, before)
    // It is noticed within ten seconds, and was due before.
    await world.runtime.advance(10_000)
    expect(await askedAt()).toHaveLength(1)
    timetable.stop()
    await running
  })

  it('of one subscription does not sleep through that of another', async () => {
    await using world = await createWorld()
    const { runner, create, state, askedAt } = await parked(world)
    const seldom = {
      subscription: { name: 'seldom', redrive: { everyMs: 24 * everyMs, maxAgeMs: undefined } },
      owns: () => true,
      isRunning: true,
      pause: undefined,
    } as unknown as Runner
    state.isOwner = false
    const timetable = create(seldom, runner)
    const running = timetable.run()
    await world.runtime.advance(15 * minute)
    state.isOwner = true
    await world.runtime.advance(10_000)
    expect(await askedAt()).toHaveLength(1)
    timetable.stop()
    await running
  })

  it('does not ask while the last one by the timetable is under way elsewhere, and waits its time again', async () => {
    await using world = await createWorld()
    const { runner, create, state, askedAt, end } = await parked(world)
    const timetable = create(runner)
    const running = timetable.run()
    // Another process asks in the time in which this one is not the owner.
    state.isOwner = false
    await ask(world.store, 's', { by: 'schedule' }, world.runtime.clock.now() + 8 * minute)
    await world.runtime.advance(9 * minute)
    state.isOwner = true
    await world.runtime.advance(8 * minute)
    expect(await askedAt()).toEqual([8])
    await world.runtime.advance(2 * minute)
    await end()
    await world.runtime.advance(8 * minute)
    expect(await askedAt()).toEqual([8])
    await world.runtime.advance(minute)
    expect(await askedAt()).toEqual([8, 28])
    timetable.stop()
    await running
  })

  it('tries again when the store is away, and says so', async () => {
    await using world = await createWorld()
    const { redrives } = world.store
    let isAway = true
    let looks = 0
    const list: typeof redrives.list = async (query) => {
      looks++
      if (isAway) throw new Error('away')
      return redrives.list(query)
    }
    const store = { ...world.store, redrives: { ...redrives, list } }
    const { runner, create, askedAt, lines } = await parked(world, { store })
    const timetable = create(runner)
    const running = timetable.run()
    await world.runtime.advance(everyMs + minute)
    expect(await askedAt()).toEqual([])
    expect(new Set(lines.map(([level]) => level))).toEqual(new Set(['warn']))
    expect(lines[0]?.[1]).toMatchObject({ subscription: 's', error: { message: 'away' } })
    isAway = false
    looks = 0
    await world.runtime.advance(10_000)
    expect(await askedAt()).toHaveLength(1)
    // And it does not look again before it is time.
    await world.runtime.advance(everyMs - 10_000)
    expect(looks).toBe(1)
    timetable.stop()
    await running
  })

  it('has nothing to do where no subscription has one', async () => {
    await using world = await createWorld()
    const { create } = await parked(world)
    const running = create({ subscription: { name: 's', redrive: undefined } } as unknown as Runner).run()
    await expect(running).resolves.toBeUndefined()
  })
})

import { createVirtualRuntime } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import type { HeldLane } from '../../dead-letter/letter.ts'
import type { RedriveTask } from '../../redrive/redrive.ts'
import { endsHead, fits, Redriving } from './redrive-tasks.ts'
import type { WorkerParts } from '../ownership/worker-parts.ts'

const taskOf = (redrive: string, rate?: number, act: RedriveTask['act'] = 'redrive'): RedriveTask => ({
  redrive,
  lane: `lane of ${redrive}`,
  position: 7,
  act,
  by: 'ada',
  reason: 'mended',
  rate,
})

const held = (redrive: string | undefined, more: Partial<HeldLane> = {}): HeldLane => ({
  lane: 'a',
  status: 'parked',
  since: 0,
  done: undefined,
  head: 1,
  headPosition: 7,
  ...(redrive !== undefined && { redrive }),
  ...more,
})

/** In one of four partitions: `tasks` is what is due there, `rates` what is known of the redrives that others began. */
function redrivingOf(tasks: readonly RedriveTask[], rates: Record<string, number | undefined> = {}) {
  const runtime = createVirtualRuntime()
  const { clock } = runtime
  const asked: unknown[] = []
  const redrives = {
    advance: async () => undefined,
    due: async (...args: unknown[]) => {
      asked.push(args)
      return tasks
    },
    find: async (id: string) => {
      asked.push(id)
      return id in rates ? { rate: rates[id] } : undefined
    },
  }
  const parts = {
    store: { redrives },
    subscription: { name: 'notify' },
    share: { partition: 2, of: 4 },
    runtime: { clock },
  } as unknown as WorkerParts
  return { redriving: new Redriving(parts), asked, clock, advance: (ms: number) => runtime.advance(ms) }
}

describe('the owner of a partition', () => {
  it('asks for lanes at once, and then until there are none; and again when it is told', async () => {
    const tasks = [taskOf('one')]
    const { redriving, asked, clock } = redrivingOf(tasks)
    const now = clock.mono()
    expect([redriving.isTold, redriving.isDue(now)]).toEqual([true, true])
    expect(await redriving.due(5)).toEqual(tasks)
    expect(asked).toEqual([['notify', 2, 5]])
    expect(redriving.isTold).toBe(true)
    tasks.pop()
    expect(await redriving.due(5)).toEqual([])
    expect([redriving.isTold, redriving.isDue(now), redriving.nextAt()]).toEqual([false, false, undefined])
    redriving.hear()
    expect([redriving.isTold, redriving.isDue(now), redriving.nextAt()]).toEqual([true, true, Number.NEGATIVE_INFINITY])
  })

  it('does not ask before the time to which it was put off, and then as before', async () => {
    const { redriving } = redrivingOf([taskOf('one')])
    redriving.postpone(100)
    expect([redriving.isDue(99), redriving.isDue(100), redriving.nextAt()]).toEqual([false, true, 100])
    await redriving.due(5)
    expect(redriving.isDue(0)).toBe(true)
  })

  it('goes as fast as each redrive may, and begins that anew for none that it knows', async () => {
    const { redriving, advance, clock } = redrivingOf([taskOf('slow', 2), taskOf('fast')])
    await redriving.due(5)
    expect(redriving.paceOf('fast')).toBeUndefined()
    expect(redriving.paceOf('unheard of')).toBeUndefined()
    expect(redriving.paceOf(undefined)).toBeUndefined()
    const pace = redriving.paceOf('slow')
    expect(pace?.waitMs(clock.mono())).toBe(0)
    pace?.take(1)
    expect(pace?.waitMs(clock.mono())).toBe(500)
    await redriving.due(5)
    await advance(100)
    expect(redriving.paceOf('slow')?.waitMs(clock.mono())).toBe(400)
  })

  it('learns how fast those may go that others have begun, in one question for each', async () => {
    const { redriving, asked, clock } = redrivingOf([taskOf('own', 2)], { theirs: 8, fast: undefined })
    await redriving.due(5)
    asked.length = 0
    const lanes = [held('theirs'), held('theirs'), held('fast'), held('gone'), held('own'), held(undefined)]
    await redriving.learn(lanes)
    expect(asked).toEqual(['theirs', 'fast', 'gone'])
    expect([redriving.paceOf('fast'), redriving.paceOf('gone')]).toEqual([undefined, undefined])
    // A quarter of the rate, as it has one of four partitions.
    const pace = redriving.paceOf('theirs')
    pace?.take(1)
    expect(pace?.waitMs(clock.mono())).toBe(500)
    // What is held is not looked at again until it was read anew.
    await redriving.learn([held('later')])
    expect(asked).toHaveLength(3)
    await redriving.due(5)
    redriving.forget()
    expect(redriving.isTold).toBe(true)
    await redriving.learn([held('later'), ...lanes])
    expect(asked.slice(-1)).toEqual(['later'])
  })

  it('looks again when what is held was read anew', async () => {
    const { redriving } = redrivingOf([])
    await redriving.due(5)
    expect(redriving.isTold).toBe(false)
    redriving.forget()
    expect(redriving.isTold).toBe(true)
  })
})

describe('a lane of a redrive', () => {
  it.for([
    ['redrive', held('r'), true],
    ['redrive', held('r', { status: 'retrying' }), true],
    ['redrive', held('r', { status: 'waiting' }), false],
    ['redrive', held('r', { headPosition: 8 }), false],
    ['discard', held('r'), true],
    ['resolve', held('r', { status: 'waiting' }), false],
    ['skip', held('r'), false],
    ['skip', held('r', { status: 'waiting' }), true],
    ['skip', held('r', { status: 'waiting', headPosition: 8 }), false],
    // It waits for a breaker, and not for a version.
    ['skip', held('r', { status: 'waiting', breaker: 'b' }), false],
    ['redrive', undefined, false],
    ['skip', undefined, false],
  ] as const)('is begun only where it stands as it stood: %s %j', ([act, hold, isFit]) => {
    expect(fits(taskOf('r', undefined, act), hold)).toBe(isFit)
  })

  it('leaves its head out for two of the acts', () => {
    const acts = ['redrive', 'discard', 'resolve', 'skip'] as const
    expect(acts.filter((act) => endsHead(taskOf('r', undefined, act)))).toEqual(['discard', 'resolve'])
  })
})

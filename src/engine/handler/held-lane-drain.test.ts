import { describe, expect, it } from 'vitest'
import { createDeskOf, heldLane } from '../../../test/handler-state.ts'
import type { QueueLimits } from '../../dead-letter/letter-store.ts'
import type { Event } from '../../event/event.ts'
import { TokenBucket } from '../held/token-bucket.ts'
import type { HandlerState } from './handler-state.ts'
import { HeldLaneDrain } from './held-lane-drain.ts'
import type { Entry } from './entry.ts'

const positionsOf = (handlerState: HandlerState, lane: string) =>
  handlerState.tracks.get(lane)?.entries.map(({ record }) => record.position)

/** Takes the first letter of a lane as one that was tried would be. */
function begin(handlerState: HandlerState, lane: string): Entry {
  const track = handlerState.tracks.get(lane)
  const entry = track?.entries.shift()
  if (!track || !entry) throw new Error(`nothing is in ${lane}`)
  handlerState.tracks.begin(track)
  return entry
}

function end(handlerState: HandlerState, drains: HeldLaneDrain, entry: Entry): void {
  const track = handlerState.tracks.get(entry.lane)
  drains.advance(entry, () => handlerState.ledger.resolved(entry, 'applied'))
  if (track) handlerState.tracks.end(track)
}

describe('the room for lanes whose time has come', () => {
  it.for([
    [8, 0, 0, 8],
    [8, 3, 0, 5],
    [8, 8, 0, 2],
    [8, 8, 2, 0],
    [8, 5, 4, -1],
    [1, 1, 0, 1],
  ] as const)('of %i places with %i taken and %i lanes at hand is %i', ([concurrency, running, draining, room]) => {
    const { handlerState, occupy } = createDeskOf({ definition: { concurrency } })
    const drains = new HeldLaneDrain(handlerState)
    occupy(running)
    for (let i = 0; i < draining; i++) handlerState.draining.add(`lane-${i}`)
    expect(drains.room).toBe(room)
  })

  it('can be taken up when something is due, by its time or by its breaker', async () => {
    const { handlerState, runtime, now, occupy } = createDeskOf({ definition: { concurrency: 1 } })
    const drains = new HeldLaneDrain(handlerState)
    expect(drains.canTakeUp).toBe(false)
    handlerState.due.add('a', now() + 10)
    expect(drains.canTakeUp).toBe(false)
    await runtime.advance(10)
    expect(drains.canTakeUp).toBe(true)
    occupy(1)
    handlerState.draining.add('other')
    expect(drains.canTakeUp).toBe(false)
    handlerState.draining.clear()
    handlerState.due.take(now())
    expect(drains.canTakeUp).toBe(false)
    handlerState.waits.add('bank', 'b')
    handlerState.waits.postpone('bank', now() + 10)
    expect(drains.canTakeUp).toBe(false)
    await runtime.advance(10)
    expect(drains.canTakeUp).toBe(true)
  })
})

describe('lanes that waited for a breaker', () => {
  const waiting = (lane: string) => heldLane(lane, { status: 'waiting', breaker: 'notify:x' })

  it('are to be tried by a commit, before their letters are loaded', async () => {
    const { handlerState, asked } = createDeskOf({ held: [waiting('a')], queues: { a: 1 } })
    const drains = new HeldLaneDrain(handlerState)
    await drains.takeUp()
    expect([asked, drains.isBarred]).toEqual([[], true])
    expect(handlerState.ledger.take().lanes).toMatchObject([{ lane: 'a', hold: { status: 'retrying' } }])
    await drains.takeUp()
    expect(asked.map(({ lanes }) => lanes)).toEqual([['a']])
    expect([positionsOf(handlerState, 'a'), drains.isBarred]).toEqual([[1], false])
  })

  it('are no more at a time than there is room for', async () => {
    const held = Array.from({ length: 10 }, (_, i) => waiting(`lane-${i}`))
    const queues = Object.fromEntries(held.map(({ lane }) => [lane, 1]))
    const { handlerState, asked } = createDeskOf({ held, queues, definition: { concurrency: 4 } })
    const [first] = held
    // It was answered, so all of them may follow.
    handlerState.waits.next(0)
    handlerState.waits.report(first?.lane ?? '', { entry: 'none' }, true)
    const drains = new HeldLaneDrain(handlerState)
    await drains.takeUp()
    expect(handlerState.ledger.take().lanes).toHaveLength(4)
    await drains.takeUp()
    expect(asked.flatMap(({ lanes }) => lanes)).toHaveLength(4)
    expect(handlerState.ledger.take().lanes).toEqual([])
  })

  it('are not loaded as long as they wait, though they were due before', async () => {
    const { handlerState, asked } = createDeskOf({ held: [waiting('a')], queues: { a: 1 } })
    handlerState.waits.postpone('notify:x', 60_000)
    handlerState.due.add('a', 0)
    await new HeldLaneDrain(handlerState).takeUp()
    expect(asked).toEqual([])
  })
})

describe('lanes whose time has come', () => {
  it('are taken up together, with so many of their letters, and the tries of their heads', async () => {
    const { handlerState, asked, told } = createDeskOf({
      held: [heldLane('a', { tries: 2 }), heldLane('b')],
      queues: { a: 2, b: 60 },
    })
    const drains = new HeldLaneDrain(handlerState)
    await drains.takeUp()
    expect(asked).toEqual([{ lanes: ['a', 'b'], limits: { events: 100, bytes: 1_000_000, perLane: 50 } }])
    expect(positionsOf(handlerState, 'a')).toEqual([1, 2])
    expect(positionsOf(handlerState, 'b')).toHaveLength(50)
    expect(
      handlerState.tracks
        .get('a')
        ?.entries.map(({ tries, begun, isLetter, lane, sequence }) => [tries, begun, isLetter, lane, sequence]),
    ).toEqual([
      [2, 3, true, 'a', 1],
      [0, 3, true, 'a', 2],
    ])
    expect([...handlerState.draining]).toEqual(['a', 'b'])
    expect([told.changed, drains.isBarred]).toEqual([1, false])
    // None of them is due any more.
    await drains.takeUp()
    expect(asked).toHaveLength(1)
  })

  it('are as many as there is room for, the others wait', async () => {
    const { handlerState, asked } = createDeskOf({
      held: ['a', 'b', 'c'].map((lane, i) => heldLane(lane, { dueAt: i + 1 })),
      queues: { a: 1, b: 1, c: 1 },
      definition: { concurrency: 2 },
    })
    const drains = new HeldLaneDrain(handlerState)
    await drains.takeUp()
    expect(asked.map(({ lanes }) => lanes)).toEqual([['a', 'b']])
    await drains.takeUp()
    expect(asked).toHaveLength(1)
    handlerState.draining.clear()
    await drains.takeUp()
    expect(asked.map(({ lanes }) => lanes)).toEqual([['a', 'b'], ['c']])
  })

  it('wait for the commit where something about them is not in the store', async () => {
    const { handlerState, asked, now } = createDeskOf({ held: [heldLane('a'), heldLane('b')], queues: { a: 1, b: 1 } })
    const drains = new HeldLaneDrain(handlerState)
    handlerState.ledger.giveBack('a', 0)
    await drains.takeUp()
    expect(asked.map(({ lanes }) => lanes)).toEqual([['b']])
    expect(drains.isBarred).toBe(true)
    handlerState.ledger.take()
    expect(handlerState.due.isDue(now())).toBe(true)
    await drains.takeUp()
    expect(asked.map(({ lanes }) => lanes)).toEqual([['b'], ['a']])
    expect(drains.isBarred).toBe(false)
  })

  it('wait for their turn where their redrive must go slowly', async () => {
    const { handlerState, runtime, asked, now } = createDeskOf({
      held: [heldLane('a', { redrive: 'r' }), heldLane('b')],
      queues: { a: 1, b: 1 },
    })
    const pace = new TokenBucket(2, now())
    pace.take(1)
    const redriving = {
      paceOf: (redrive?: string) => (redrive === 'r' ? pace : undefined),
      isLeftOut: () => false,
    } as unknown as HandlerState['redriving']
    const drains = new HeldLaneDrain({ ...handlerState, redriving })
    await drains.takeUp()
    expect(asked.map(({ lanes }) => lanes)).toEqual([['b']])
    expect(handlerState.due.nextAt()).toBe(now() + 500)
    await runtime.advance(500)
    await drains.takeUp()
    expect(asked.map(({ lanes }) => lanes)).toEqual([['b'], ['a']])
  })

  it('are left alone where they are not held, parked, or at hand already', async () => {
    const { handlerState, asked, told } = createDeskOf({
      held: [heldLane('parked', { status: 'parked' }), heldLane('busy'), heldLane('well')],
      queues: { parked: 1, busy: 1, well: 1 },
    })
    const drains = new HeldLaneDrain(handlerState)
    handlerState.draining.add('busy')
    for (const lane of ['parked', 'gone']) handlerState.due.add(lane, 0)
    await drains.takeUp()
    expect(asked.map(({ lanes }) => lanes)).toEqual([['well']])
    handlerState.due.add('gone', 0)
    await drains.takeUp()
    expect([asked.length, told.changed]).toEqual([1, 1])
  })

  it('are due still when the store is away, or had no room for them', async () => {
    const { handlerState, script, now } = createDeskOf({
      held: [heldLane('a'), heldLane('b')],
      queues: { a: 1, b: 1 },
      most: 1,
    })
    const drains = new HeldLaneDrain(handlerState)
    script.isDown = true
    await expect(drains.takeUp()).rejects.toThrow('took the store away')
    expect(handlerState.due.isDue(now())).toBe(true)
    script.isDown = false
    await drains.takeUp()
    expect([...handlerState.draining]).toEqual(['a'])
    expect(handlerState.due.isDue(now())).toBe(true)
    await drains.takeUp()
    expect([...handlerState.draining]).toEqual(['a', 'b'])
  })

  it('flow again where nothing is there that could hold them up', async () => {
    const { handlerState } = createDeskOf({ held: [heldLane('a')] })
    await new HeldLaneDrain(handlerState).takeUp()
    expect(handlerState.partition.held.has('a')).toBe(false)
    expect([...handlerState.draining]).toEqual([])
    expect(handlerState.ledger.take().released).toEqual(['a'])
  })
})

describe('a letter that is over', () => {
  async function takenUp(queue: number) {
    const made = createDeskOf({ held: [heldLane('a')], queues: { a: queue } })
    const drains = new HeldLaneDrain(made.handlerState)
    await drains.takeUp()
    return { ...made, drains }
  }

  it('makes the next one the head', async () => {
    const { handlerState, drains } = await takenUp(2)
    end(handlerState, drains, begin(handlerState, 'a'))
    expect(drains.isFinishing).toBe(false)
    expect(handlerState.partition.held.get('a')).toMatchObject({ head: 2, headPosition: 2, status: 'retrying' })
    expect(handlerState.ledger.take().counts).toMatchObject({ held: -1, applied: 1 })
  })

  it('lets its lane flow when none is behind it, and is written then', async () => {
    const { handlerState, drains, asked } = await takenUp(1)
    end(handlerState, drains, begin(handlerState, 'a'))
    expect([drains.isFinishing, handlerState.ledger.isEmpty]).toEqual([true, true])
    await drains.finish()
    expect(asked.at(-1)?.limits).toMatchObject({ events: 2, perLane: 2 })
    expect([drains.isFinishing, handlerState.partition.held.has('a'), handlerState.draining.has('a')]).toEqual([
      false,
      false,
      false,
    ])
    expect(handlerState.ledger.take()).toMatchObject({ counts: { applied: 1, held: -1 }, released: ['a'] })
  })

  it.for([2, 3])('makes what came in behind it the head, and due: %i are there', async (count) => {
    const { handlerState, drains, script, now, told } = await takenUp(1)
    end(handlerState, drains, begin(handlerState, 'a'))
    script.remaining.set('a', count)
    await drains.finish()
    expect(handlerState.partition.held.get('a')).toMatchObject({ head: 2, headPosition: 2 })
    expect([handlerState.due.isDue(now()), handlerState.draining.has('a'), told.wake]).toEqual([true, false, 0])
  })

  it('waits for the commit of what was queued behind it, which others wait for too', async () => {
    const { handlerState, drains, asked, occupy, now } = await takenUp(1)
    const entry = begin(handlerState, 'a')
    end(handlerState, drains, entry)
    handlerState.ledger.queued({ ...entry, sequence: 2 })
    const before = asked.length
    await drains.finish()
    expect([asked.length, drains.isFinishing]).toEqual([before, true])
    expect(drains.isBarred).toBe(false)
    // Somebody is due, and there is no room but for this one.
    occupy(100)
    for (let i = 0; i < 100; i++) handlerState.draining.add(`lane-${i}`)
    expect(drains.isBarred).toBe(false)
    handlerState.due.add('b', now())
    expect(drains.isBarred).toBe(true)
    handlerState.ledger.take()
    await drains.finish()
    expect([drains.isFinishing, drains.isBarred]).toEqual([false, false])
  })

  it('is asked for again where the store had no room for all', async () => {
    const { handlerState, told } = createDeskOf({ held: [heldLane('a'), heldLane('b')], queues: { a: 1, b: 1 } })
    const drains = new HeldLaneDrain(handlerState)
    await drains.takeUp()
    for (const lane of ['a', 'b']) end(handlerState, drains, begin(handlerState, lane))
    const { letters } = handlerState.parts.store
    let most = 1
    Object.assign(handlerState.parts.store, {
      letters: {
        queues: (name: string, partition: number, lanes: readonly string[], limits: QueueLimits) =>
          letters.queues(name, partition, lanes.slice(0, most), limits),
      },
    })
    await drains.finish()
    expect([drains.isFinishing, told.wake, [...handlerState.draining]]).toEqual([true, 1, ['b']])
    most = 2
    await drains.finish()
    expect([drains.isFinishing, told.wake]).toEqual([false, 1])
  })

  it('makes room for others when it is the last', async () => {
    const { handlerState, occupy, now } = createDeskOf({
      held: [heldLane('a')],
      queues: { a: 1 },
      definition: { concurrency: 1 },
    })
    const drains = new HeldLaneDrain(handlerState)
    await drains.takeUp()
    const entry = begin(handlerState, 'a')
    occupy(1)
    handlerState.due.add('b', now())
    expect(drains.canTakeUp).toBe(false)
    end(handlerState, drains, entry)
    expect(drains.canTakeUp).toBe(true)
  })
})

describe('letters that were done meanwhile, under another position', () => {
  it('are known as such when they are taken up', async () => {
    const { handlerState } = createDeskOf({
      held: [heldLane('a', { dueAt: 0 })],
      queues: { a: 2 },
      definition: { dedupe: { by: 'id' } },
    })
    handlerState.parts.store.inbox.find = async (_handler, keys) =>
      new Map(keys.filter((key) => key === 'a-1').map((key) => [key, { key, result: null, until: undefined }]))
    await new HeldLaneDrain(handlerState).takeUp()
    const isDone = (id: string) => handlerState.dedup?.isDone({ id } as Event)
    expect([await isDone('a-1'), await isDone('a-2')]).toEqual([true, false])
  })
})

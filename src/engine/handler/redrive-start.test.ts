import { describe, expect, it } from 'vitest'
import { createDeskOf, heldLane, taskOf } from '../../../test/handler-state.ts'
import type { HeldLane } from '../../dead-letter/letter.ts'
import type { RedriveTask } from '../../redrive/redrive.ts'
import { Suspicion } from '../crash/suspicion.ts'
import { RedriveStart } from './redrive-start.ts'

const parked = (lane: string) => heldLane(lane, { status: 'parked' })
const lanesOf = (count: number, name = 'lane') => Array.from({ length: count }, (_, i) => `${name}-${i}`)

function beginning(lanes: readonly string[], tasks: readonly RedriveTask[], queues: Record<string, number> = {}) {
  const made = createDeskOf({ held: lanes.map(parked), tasks, queues })
  const beginnings = new RedriveStart(made.handlerState)
  /** With a commit, after which the store gives no more what was begun or passed over. */
  const round = async () => {
    await beginnings.take()
    const group = made.handlerState.ledger.take()
    const over = new Set(group.redriven.map(({ lane }) => lane))
    made.script.tasks = made.script.tasks.filter(({ lane }) => !over.has(lane))
    return group
  }
  return { ...made, beginnings, round }
}

const begun = ({ redriven }: { readonly redriven: readonly { readonly lane: string; readonly state: string }[] }) =>
  redriven.filter(({ state }) => state !== 'passed').map(({ lane }) => lane)

describe('a lane of a redrive', () => {
  it('is due from when it is begun, which is in the commit', async () => {
    const { handlerState, round, now, told } = beginning(['a'], [taskOf('a')])
    const group = await round()
    expect(group.redriven).toEqual([{ redrive: 'r', lane: 'a', letters: 0, state: 'running' }])
    expect(group.letters).toEqual([{ change: 'status', position: 1, status: 'retrying' }])
    expect(handlerState.partition.held.get('a')).toMatchObject({ status: 'retrying', redrive: 'r' })
    expect(handlerState.due.take(now())).toBe('a')
    expect(told.due).toBe(1)
  })

  it('has its verdict when it is begun, and not that it went through', async () => {
    const { handlerState, round } = beginning(['a'], [taskOf('a')])
    const settled: unknown[] = []
    handlerState.flow.settled = (...args) => void settled.push(args)
    await round()
    expect(settled).toEqual([['a', false]])
  })

  it('is not blamed any more for what died over its head', async () => {
    const { handlerState, beginnings } = beginning(['a'], [taskOf('a')])
    const suspicion = new Suspicion([{ position: 1, instance: 'dead' }], true, 'i', 2)
    expect(suspicion.deathsOver(1)).toBe(2)
    await new RedriveStart({ ...handlerState, suspicion }).take()
    expect([suspicion.deathsOver(1), handlerState.ledger.take().endedTrials]).toEqual([undefined, [1]])
    expect(beginnings.isLettingFlow).toBe(false)
  })

  it('is not begun while it is tried, or while something about it is not in the store', async () => {
    const { handlerState, round } = beginning(
      ['a', 'b', 'c'],
      ['a', 'b', 'c'].map((lane) => taskOf(lane)),
    )
    handlerState.draining.add('a')
    handlerState.ledger.queued({
      lane: 'b',
      record: { position: 2 } as never,
      sequence: 2,
      logged: true,
      unrecorded: [],
    })
    expect(begun(await round())).toEqual(['c'])
    handlerState.draining.delete('a')
    expect(begun(await round())).toEqual(['a', 'b'])
  })

  it('is passed over where it stands elsewhere by now', async () => {
    const { round } = beginning(['a', 'b'], [taskOf('a', { position: 7 }), taskOf('b'), taskOf('gone')])
    const { redriven } = await round()
    expect(redriven.map(({ lane, state }) => [lane, state])).toEqual([
      ['a', 'passed'],
      ['gone', 'passed'],
      ['b', 'running'],
    ])
  })

  it('is not asked for again before the commit of those before it', async () => {
    const { beginnings, handlerState, told } = beginning(['a', 'b'], [taskOf('a')])
    await beginnings.take()
    await beginnings.take()
    expect(told.due).toBe(1)
    handlerState.ledger.take()
    await beginnings.take()
    expect(told.due).toBe(2)
  })

  it('is asked for no more when there was none, until it is told', async () => {
    const { round, handlerState, told } = beginning(['a'], [])
    await round()
    await round()
    expect(told.due).toBe(1)
    handlerState.redriving.hear()
    await round()
    expect(told.due).toBe(2)
  })
})

describe('lanes under way', () => {
  it('are a hundred at the most, over all redrives', async () => {
    const [ones, twos] = [lanesOf(70, 'one'), lanesOf(70, 'two')]
    const tasks = [...ones.map((lane) => taskOf(lane)), ...twos.map((lane) => taskOf(lane, { redrive: 's' }))]
    const { round, handlerState, told } = beginning([...ones, ...twos], tasks)
    expect(begun(await round())).toHaveLength(100)
    expect(handlerState.ledger.underWay).toBe(100)
    expect(begun(await round())).toEqual([])
    expect(told.due).toBe(1)
    handlerState.ledger.advance('one-0', undefined)
    handlerState.ledger.take()
    expect(begun(await round())).toEqual(['two-30'])
  })
})

describe('what is left out', () => {
  it.for(['discard', 'resolve'] as const)('by %s makes what is behind it the head, and due', async (act) => {
    const { round, handlerState, asked, now } = beginning(
      ['a', 'b', 'c'],
      [taskOf('a', { act }), taskOf('b', { act }), taskOf('c')],
      { a: 3, b: 1, c: 5 },
    )
    const group = await round()
    expect(asked).toEqual([{ lanes: ['a', 'b'], limits: { events: 4, bytes: 1_000_000, perLane: 2 } }])
    expect(group.counts).toMatchObject({ held: -2, discarded: 2 })
    expect(group.redriven.map(({ lane, letters, state }) => [lane, letters, state])).toEqual([
      ['a', 1, 'running'],
      ['b', 1, 'done'],
      ['c', 0, 'running'],
    ])
    expect(handlerState.partition.held.get('a')).toMatchObject({ head: 2, headPosition: 2, status: 'retrying' })
    expect(handlerState.partition.held.has('b')).toBe(false)
    const due = [handlerState.due.take(now()), handlerState.due.take(now()), handlerState.due.take(now())]
    expect(new Set(due)).toEqual(new Set(['a', 'c', undefined]))
  })

  it('lets others be read when its lane flows, before the next ones are asked for', async () => {
    const tasks = [taskOf('a', { act: 'discard' }), taskOf('b', { act: 'discard' })]
    const { round, beginnings, script, told } = beginning(['a', 'b'], tasks.slice(0, 1), { a: 1, b: 1 })
    expect(begun(await round())).toEqual(['a'])
    script.tasks = tasks.slice(1)
    expect(begun(await round())).toEqual([])
    // It comes back at once.
    expect([beginnings.isLettingFlow, told.due, told.wake]).toEqual([false, 1, 1])
    expect(begun(await round())).toEqual(['b'])
  })

  it('waits where there was no room to look behind it', async () => {
    const made = createDeskOf({
      held: ['a', 'b'].map(parked),
      tasks: ['a', 'b'].map((lane) => taskOf(lane, { act: 'discard' })),
      queues: { a: 1, b: 1 },
      most: 1,
    })
    await new RedriveStart(made.handlerState).take()
    expect(begun(made.handlerState.ledger.take())).toEqual(['a'])
    expect(made.handlerState.partition.held.get('b')).toEqual(parked('b'))
  })
})

describe('a redrive that must go slowly', () => {
  const lanes = lanesOf(6)

  it('has as many lanes waiting as it may try at once, and is asked for again soon', async () => {
    const { round, handlerState, runtime, told, now } = beginning(
      lanes,
      lanes.map((lane) => taskOf(lane, { rate: 8 })),
    )
    expect(begun(await round())).toEqual(['lane-0', 'lane-1'])
    expect(begun(await round())).toEqual([])
    expect(handlerState.redriving.nextAt()).toBe(now() + 50)
    await round()
    expect(told.due).toBe(2)
    await runtime.advance(50)
    // One of them is being tried: it waits no more.
    handlerState.draining.add('lane-0')
    expect(begun(await round())).toEqual(['lane-2'])
    expect(handlerState.redriving.isDue(now())).toBe(true)
  })

  it('keeps no other waiting, and counts only its own', async () => {
    const slow = lanes.slice(0, 3).map((lane) => taskOf(lane, { rate: 4 }))
    const quick = lanes.slice(3).map((lane) => taskOf(lane, { redrive: 's' }))
    const other = taskOf('x', { redrive: 't', rate: 4 })
    const { round } = beginning([...lanes, 'x'], [...slow, ...quick, other])
    expect(begun(await round())).toEqual(['lane-0', 'lane-3', 'lane-4', 'lane-5', 'x'])
  })
})

describe('a lane that is ended as a whole', () => {
  it('ends its head and the queued letters in two commits, and tries the letters after them', async () => {
    const task = { ...taskOf('a'), act: 'discard', until: 3 } as const
    const { handlerState, round, now, beginnings } = beginning(['a'], [task], { a: 5 })
    const first = await round()
    expect(first.letters[0]).toMatchObject({ change: 'discarded', position: 1 })
    expect(handlerState.redriving.isLeftOut(handlerState.partition.held.get('a') as HeldLane)).toBe(true)
    expect(beginnings.isLeavingOut).toBe(true)
    const second = await round()
    const ended = second.letters.flatMap((change) => (change.change === 'discarded' ? [change.position] : []))
    expect(Math.max(...ended)).toBe(3)
    expect(second.redriven).toMatchObject([{ lane: 'a', state: 'running' }])
    expect([beginnings.isLeavingOut, handlerState.partition.held.get('a')?.headPosition]).toEqual([false, 4])
    expect(handlerState.due.take(now())).toBe('a')
  })
})

import { describe, expect, it } from 'vitest'
import { createDeskOf, type DeskSetup, heldLane } from '../../../test/handler-state.ts'
import type { Event } from '../../event/event.ts'
import { Intake } from './intake.ts'

function reading(setup: DeskSetup = {}) {
  const made = createDeskOf(setup)
  const deliver = (count: number, key = 'a', type = 'Credited') => {
    for (let i = 0; i < count; i++) made.source.deliver({ key, type, data: { amount: 1 } })
  }
  const finish = (count: number, key = 'a') => {
    const track = made.handlerState.tracks.get(key)
    for (const entry of track?.entries.splice(0, count) ?? []) made.handlerState.window.finish(entry)
  }
  return { ...made, intake: new Intake(made.handlerState), deliver, finish }
}

describe('what is read', () => {
  it('is put where it belongs', async () => {
    const { handlerState, intake, deliver } = reading({
      held: [heldLane('held')],
      marks: [[4, 4]],
      definition: { order: 'key' },
    })
    deliver(1)
    deliver(1, 'held')
    deliver(1, 'b', 'Renamed')
    deliver(1, 'marked')
    deliver(1, 'c', 'Strange')
    deliver(1)
    await intake.read()
    expect(handlerState.tracks.size).toBe(1)
    expect(handlerState.tracks.get('a')?.entries.map(({ record }) => record.position)).toEqual([1, 6])
    const { counts, held, unknown } = handlerState.ledger.take()
    expect(counts).toMatchObject({ filtered: 2, held: 1, applied: 0, duplicate: 0 })
    expect(held.map(({ lane, status }) => [lane, status])).toEqual([['held', 'queued']])
    expect(unknown.map(({ position }) => position)).toEqual([5])
    expect([handlerState.window.size, handlerState.window.unfinished, handlerState.window.through]).toEqual([6, 2, 6])
  })

  it('is known to be done before, where the store says so, in one question', async () => {
    const { handlerState, intake, deliver } = reading({ definition: { dedupe: { by: ({ key }) => key } } })
    const asked: unknown[] = []
    handlerState.parts.store.inbox.find = async (_handler, keys) => {
      asked.push(keys)
      return new Map([['b', { key: 'b', result: null, until: undefined }]])
    }
    for (const key of ['a', 'b']) deliver(1, key)
    await intake.read()
    expect(asked).toEqual([['a', 'b']])
    const isDone = (key: string) => handlerState.dedup?.isDone({ id: key, key } as Event)
    expect([await isDone('a'), await isDone('b')]).toEqual([false, true])
  })

  it('is one track where the whole partition is kept in order', async () => {
    const { handlerState, intake, deliver } = reading({ definition: { order: 'partition' } })
    for (const key of ['a', 'b']) deliver(1, key)
    await intake.read()
    expect(handlerState.tracks.get('')?.entries.map(({ lane }) => lane)).toEqual(['a', 'b'])
  })

  it('is as much as there is room for, in larger pieces', async () => {
    const { handlerState, intake, deliver, finish, reads } = reading()
    deliver(2_000)
    await intake.read()
    expect(reads).toEqual([{ after: 0, events: 1_000, bytes: 1_000_000 }])
    expect(handlerState.window.unfinished).toBe(1_000)
    expect(intake.canRead).toBe(false)
    finish(499)
    await intake.read()
    expect([intake.canRead, reads.length]).toEqual([false, 1])
    finish(1)
    expect(intake.canRead).toBe(true)
    await intake.read()
    expect(reads[1]).toEqual({ after: 1_000, events: 500, bytes: 1_000_000 })
  })

  it('is not more than the checkpoint can wait for', async () => {
    const { handlerState, intake } = reading()
    const slot = (position: number) => ({ record: { position, body: '' } as never, isDone: true })
    handlerState.window.add(
      Array.from({ length: 19_500 }, (_, i) => slot(i + 1)),
      19_500,
    )
    expect([intake.canRead, intake.isFull]).toEqual([true, false])
    handlerState.window.add([slot(19_501)], 19_501)
    expect([intake.canRead, intake.isFull]).toEqual([false, true])
  })

  it('is not more than so many bytes', async () => {
    const { intake, deliver, finish } = reading({ pageBytes: 24 })
    deliver(3)
    await intake.read()
    // Two of twelve bytes each.
    expect(intake.canRead).toBe(false)
    finish(1)
    expect(intake.canRead).toBe(true)
  })
})

describe('whether there is more', () => {
  it('is found out by reading until nothing comes, and then by whoever says so', async () => {
    const { handlerState, intake, deliver, finish, reads } = reading()
    deliver(1)
    expect([intake.canRead, intake.isAtEnd]).toEqual([true, false])
    await intake.read()
    expect([intake.canRead, intake.isAtEnd]).toEqual([true, false])
    await intake.read()
    expect([intake.canRead, intake.isAtEnd]).toEqual([false, false])
    await intake.read()
    expect(reads).toHaveLength(2)
    finish(1)
    handlerState.window.pass(1)
    expect(intake.isAtEnd).toBe(true)
    intake.appended()
    expect([intake.canRead, intake.isAtEnd]).toEqual([true, false])
  })

  it('is asked of another source every so often, and never of the log', async () => {
    for (const [foreign, count] of [
      [true, 2],
      [false, 1],
    ] as const) {
      const { intake, reads, runtime } = reading({ foreign })
      await runtime.advance(70)
      await intake.read()
      await runtime.advance(99)
      await intake.read()
      expect(reads).toHaveLength(1)
      await runtime.advance(1)
      await intake.read()
      expect(reads).toHaveLength(count)
    }
  })

  it('is found out also where all that was read was for other partitions', async () => {
    const { handlerState, intake } = reading()
    const pages = [
      { events: [], through: 10 },
      { events: [], through: 10 },
    ]
    handlerState.parts.source.read = async () => pages.shift() ?? { events: [], through: 10 }
    await intake.read()
    expect([intake.canRead, handlerState.window.through]).toEqual([true, 10])
    await intake.read()
    expect(intake.canRead).toBe(false)
  })

  it('is not asked for where the source says that this was the end', async () => {
    const { handlerState, intake, deliver } = reading()
    const { source } = handlerState.parts
    deliver(1)
    const page = await source.read(0, { events: 9, bytes: 99 }, new AbortController().signal, handlerState.parts.share)
    source.read = async () => ({ ...page, isEnd: true })
    await intake.read()
    expect([intake.canRead, handlerState.window.size]).toEqual([false, 1])
  })

  it.for([true, false])(
    'is taken as it comes from the log alone; of another source it is checked: %s',
    async (foreign) => {
      const { handlerState, intake } = reading({ foreign })
      handlerState.parts.source.read = async () => ({ events: [], through: -1 })
      const outcome = await intake.read().then(
        () => 'taken',
        () => 'refused',
      )
      expect(outcome).toBe(foreign ? 'refused' : 'taken')
    },
  )

  it('is unknown still when the source is away', async () => {
    const { intake, script, reads } = reading()
    script.isDown = true
    await expect(intake.read()).rejects.toThrow('took the source away')
    expect(intake.canRead).toBe(true)
    script.isDown = false
    await intake.read()
    expect([reads.length, intake.canRead]).toEqual([2, false])
  })

  it('is no matter of whoever only works off letters', async () => {
    const { intake, deliver, reads } = reading({ only: 'letters', foreign: true })
    deliver(1)
    expect(intake.isAtEnd).toBe(true)
    intake.appended()
    await intake.read()
    expect([intake.canRead, intake.isAtEnd, reads.length]).toEqual([false, true, 0])
  })
})

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineEvents } from '../event/catalog.ts'
import type { Event } from '../event/event.ts'
import { beginFold, foldEvent, rowWrite } from './fold.ts'
import { defineProjection, type Projection, type Reducer } from './projection.ts'
import type { StoredRow } from './row-store.ts'

const events = defineEvents({ Happened: z.unknown() })
const start = { count: 0, list: [1, 2], note: null as string | null }

/** A projection whose one fold is the given function. */
function projectionOf(fold: unknown, rest: Record<string, unknown> = {}): Projection {
  const definition = { events, initial: () => structuredClone(start) as unknown, on: { Happened: fold as never } }
  return defineProjection('counts', { ...definition, ...rest })
}

const happened = (data: unknown, version: number | undefined): Event => ({
  id: `id-${version}`,
  type: 'Happened',
  key: 'a',
  ...(version !== undefined && { version }),
  data,
  metadata: {},
  time: '2026-01-01T00:00:00.000Z',
})

/** The row of a key, and how to fold events into it. */
function folding(projection: Projection, stored?: StoredRow) {
  const state = beginFold(projection, 'a', stored)
  const reducer = projection.reducers.get('Happened') as Reducer
  return {
    state,
    fold: (data: unknown, version = state.version + 1) =>
      foldEvent(projection, state, reducer, happened(data, version), version * 10),
    write: () => rowWrite(projection, state),
  }
}

const stored: StoredRow = { key: 'a', version: 4, position: 40, json: '{"count":4,"list":[1,2],"note":null}' }
const counting = projectionOf((row: typeof start, { data }: Event) => ({ ...row, count: row.count + (data as number) }))

describe('a fold', () => {
  it('begins with the initial row, made for the key, and goes from event to event', () => {
    const initial = (key: string) => ({ key, sum: 0 })
    const adding = (row: { sum: number }, { data }: Event) => ({ ...row, sum: row.sum + (data as number) })
    const { fold, write, state } = folding(projectionOf(adding, { initial }))
    expect(fold(5)).toBeUndefined()
    expect(fold(7)).toBeUndefined()
    expect(state.changed).toBe(true)
    expect(write()).toEqual({ key: 'a', version: 2, position: 20, json: '{"key":"a","sum":12}', columns: [] })
  })

  it('goes on from the stored row', () => {
    const { fold, write, state } = folding(counting, stored)
    expect(state).toMatchObject({ version: 4, position: 40, done: 4, changed: false })
    expect(fold(1)).toBeUndefined()
    expect(write()).toMatchObject({ version: 5, position: 50, json: '{"count":5,"list":[1,2],"note":null}' })
  })

  it('takes the version of the event, or counts where events have none or the rows have keys of their own', () => {
    const versioned = folding(counting, stored)
    versioned.fold(1, 9)
    expect(versioned.state.version).toBe(9)

    const counted = folding(counting, stored)
    foldEvent(counting, counted.state, counting.reducers.get('Happened') as Reducer, happened(1, undefined), 90)
    expect(counted.state).toMatchObject({ version: 5, position: 90 })

    const own = folding({ ...counting, keyOf: () => 'a' }, stored)
    own.fold(1, 9)
    expect(own.state).toMatchObject({ version: 5, done: undefined })
  })

  it('that returns the same row changes nothing: there is nothing to write', () => {
    const { fold, state } = folding(
      projectionOf((row: unknown) => row),
      stored,
    )
    expect(fold(1)).toBeUndefined()
    expect(state).toMatchObject({ changed: false, version: 4, position: 40 })

    const fresh = folding(projectionOf((row: unknown) => row))
    expect(fresh.fold(1)).toBeUndefined()
    expect(fresh.state).toMatchObject({ changed: false, version: 0 })
  })

  it('keeps a -0, from event to event and from the store', () => {
    const { fold, write, state } = folding(projectionOf((row: object, { data }: Event) => ({ ...row, count: data })))
    fold(-0)
    expect(write().json).toBe('{"count":-0,"list":[1,2],"note":null}')
    fold(0)
    expect(write().json).toBe('{"count":0,"list":[1,2],"note":null}')

    const again = folding(
      projectionOf((row: object) => ({ ...row, note: 'seen' })),
      { ...stored, json: '{"count":-0}' },
    )
    again.fold(1)
    expect(again.write().json).toBe('{"count":-0,"note":"seen"}')
    expect(folding(counting, { ...stored, json: '{"count":-0}' }).write().json).toBe('{"count":-0}')
    expect(state.negativeZero).toBe(false)
  })

  it('stores a field that the type of the row does not have: only the compiler knows that type', () => {
    const { fold, write } = folding(projectionOf((row: object) => ({ ...row, nope: 1 })))
    expect(fold(1)).toBeUndefined()
    expect(JSON.parse(write().json)).toEqual({ ...start, nope: 1 })
  })

  it('can hold half characters and U+0000 in a row', () => {
    const { fold, write } = folding(projectionOf((row: object, { data }: Event) => ({ ...row, note: data })))
    fold('\ud800\0')
    expect(JSON.parse(write().json)).toMatchObject({ note: '\ud800\0' })
  })
})

describe('a fold that fails leaves the row as it was, and says why', () => {
  const nasty = {
    throws: () => {
      throw new RangeError('can not take 5')
    },
    'throws nothing at all': () => {
      throw undefined // oxlint-disable-line no-throw-literal, typescript/only-throw-error -- the point
    },
    'changes the row in place': (row: { count: number }) => {
      row.count = 99
      return row
    },
    'changes a list in the row and then throws': (row: { list: number[] }) => {
      row.list.push(3)
      throw new Error('too late')
    },
    'changes the row in place and returns a copy': (row: { list: number[] }) => {
      row.list[0] = 99
      return { ...row }
    },
    'adds to the row': (row: Record<string, unknown>) => Object.assign(row, { extra: 1 }),
    'deletes from the row': (row: Partial<typeof start>) => {
      delete row.note
      return row
    },
  }

  it.for(Object.entries(nasty))('when it %s', ([, reducer]) => {
    for (const before of [stored, undefined]) {
      const { fold, state } = folding(projectionOf(reducer), before)
      const held = structuredClone(state)
      expect(fold(5)).toMatchObject({ class: 'permanent', rule: 'fold' })
      expect(state).toEqual(held)
    }
  })

  it('when initial throws, or returns what no row can be', () => {
    const throwing = () => {
      throw new RangeError('no such key')
    }
    expect(folding(projectionOf((row: unknown) => row, { initial: throwing })).fold(1)).toMatchObject({
      rule: 'fold',
      errorType: 'RangeError',
      message: 'no such key',
    })
    for (const initial of [() => undefined, () => new Date(0), async () => ({ count: 0 })])
      expect(folding(projectionOf((row: unknown) => row, { initial })).fold(1)).toMatchObject({ code: 'FOLD_STATE' })
  })

  it.for([
    ['undefined', undefined, 'row is undefined'],
    ['NaN in a field', { count: Number.NaN }, 'row.count is NaN'],
    ['a date in a field', { at: new Date(0) }, 'row.at is an instance of Date'],
    ['a promise', Promise.resolve({ count: 1 }), 'A fold must be synchronous'],
    ['undefined in a field', { count: 1, note: undefined }, 'row.note is undefined'],
    ['a map', new Map(), 'row is an instance of Map'],
    ['a function', () => 1, 'row is function'],
  ] as const)('when it returns %s', ([, result, why]) => {
    const { fold, state } = folding(
      projectionOf(() => result),
      stored,
    )
    const held = structuredClone(state)
    expect(fold(5)).toMatchObject({
      class: 'permanent',
      rule: 'row',
      code: 'FOLD_STATE',
      message: expect.stringContaining(why),
    })
    expect(state).toEqual(held)
  })

  it('and the next event finds the row as if nothing had been', () => {
    const touchy = (row: typeof start, { data }: Event) => {
      if (data === 'bad') throw new Error('bad')
      return { ...row, count: row.count + 1 }
    }
    const { fold, write } = folding(projectionOf(touchy))
    fold(1)
    expect(fold('bad')).toBeDefined()
    fold(1, 3)
    expect(write()).toMatchObject({ version: 3, json: '{"count":2,"list":[1,2],"note":null}' })
  })
})

describe('a promoted column', () => {
  const columns = { t: 'text', i: 'integer', r: 'real', b: 'boolean' }
  const copying = projectionOf((_: unknown, { data }: Event) => data, { columns })

  it('has the value of its field, and NULL where there is none', () => {
    const { fold, write } = folding(copying)
    fold({ t: 'text', i: 5, r: 0.5, b: false, more: [1] })
    expect(write().columns).toEqual(['text', 5, 0.5, false])
    fold({ t: null })
    expect(write().columns).toEqual([null, null, null, null])
    fold({ t: '', i: -(2 ** 53 - 1), r: -0, b: true })
    expect(write().columns).toEqual(['', -(2 ** 53 - 1), -0, true])
  })

  it.for([
    ['t', 5],
    ['t', '\ud800'],
    ['t', 'a\0'],
    ['t', ['text']],
    ['i', 0.5],
    ['i', 2 ** 53],
    ['i', '5'],
    ['i', true],
    ['r', '0.5'],
    ['r', {}],
    ['b', 1],
    ['b', 'true'],
  ] as const)('%s can not be %j: the event that made it so is the one to hold', ([name, value]) => {
    const { fold, state } = folding(copying, { ...stored, json: '{"i":4}' })
    const held = structuredClone(state)
    expect(fold({ [name]: value })).toMatchObject({
      rule: 'row',
      code: 'FOLD_STATE',
      message: expect.stringContaining(` ${name} is `),
    })
    expect(state).toEqual(held)
  })
})

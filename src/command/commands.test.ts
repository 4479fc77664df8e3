import { createTemporaryStore } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, expectTypeOf, it, vi } from 'vitest'
import { z } from 'zod'
import { bank, credited, debited } from '../../test/fixtures.ts'
import { ExpectedVersionError, StoreError } from '../errors.ts'
import { defineEvents } from '../event/catalog.ts'
import { createLog } from '../log/log.ts'
import type { LogStore } from '../log/log-store.ts'
import type { Runtime } from '../runtime/ports.ts'
import { systemRuntime } from '../runtime/system.ts'
import type { Store } from '../store.ts'
import { type CommandsOptions, createCommands } from './commands.ts'

let store: Store

beforeEach(async () => {
  store = await createTemporaryStore()
})
afterEach(() => store.close())

/** Waits for nothing, and keeps what it was asked to wait. */
function impatient(u32 = () => 0) {
  const waits: number[] = []
  const timers: Runtime['timers'] = {
    sleep: async (ms) => void waits.push(ms),
    yield: () => systemRuntime.timers.yield(),
  }
  return { waits, runtime: { timers, random: { u32 } } }
}

const fold = {
  events: bank,
  initial: () => ({ balance: 0, owner: 'nobody' }),
  on: {
    Credited: (state: Account, { data }: { data: { amount: number } }) => ({
      ...state,
      balance: state.balance + data.amount,
    }),
    Debited: (state: Account, { data }: { data: { amount: number } }) => {
      if (data.amount > state.balance) throw new RangeError('that is too much')
      return { ...state, balance: state.balance - data.amount }
    },
  },
}

interface Account {
  readonly balance: number
  readonly owner: string
}

type Options = Partial<CommandsOptions<typeof bank, Account>>

function accounts(options: Options = {}) {
  return createCommands({ store, ...fold, ...impatient().runtime, ...options })
}

/** The same log, with another way to append. */
function withAppend(append: LogStore['append']): { readonly log: LogStore } {
  return { log: { ...store.log, append } }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

const eventsOf = (key: string) => all(createLog({ store, events: bank }).readKey(key))

describe('a command', () => {
  it('decides on the state of its key, and appends what it decided', async () => {
    const bob = accounts()
    const first = await bob.execute('bob', () => [credited(100), { type: 'Renamed', data: { owner: 'Bob' } }])
    expect(first).toMatchObject({ outcome: 'executed', version: 2, position: 2, state: { balance: 100 } })
    const second = await bob.execute('bob', (state, { key, version }) => {
      expect([key, version]).toEqual(['bob', 2])
      return [debited(state.balance - 1)]
    })
    expect(second).toMatchObject({ outcome: 'executed', version: 3, position: 3, state: { balance: 1 } })
    expect(second.events).toMatchObject([{ type: 'Debited', key: 'bob', version: 3, data: { amount: 99 } }])
    expect(await eventsOf('bob')).toMatchObject([...first.events, ...second.events])
  })

  it('may take its time to decide', async () => {
    const done = await accounts().execute('bob', async (state) => {
      await systemRuntime.timers.yield()
      return [credited(state.balance + 7)]
    })
    expect(done.state.balance).toBe(7)
  })

  it('that decides nothing writes nothing, and tells the state', async () => {
    const bob = accounts()
    expect(await bob.execute('bob', () => undefined)).toEqual({
      outcome: 'unchanged',
      version: 0,
      position: 0,
      state: { balance: 0, owner: 'nobody' },
      events: [],
    })
    await createLog({ store }).append('somebody else', [{ type: 'X', data: 1 }])
    await bob.execute('bob', () => [credited(5)])
    expect(await bob.execute('bob', async () => [])).toMatchObject({
      outcome: 'unchanged',
      version: 1,
      position: 2,
      state: { balance: 5 },
    })
    expect(await eventsOf('bob')).toHaveLength(1)
  })

  it('that throws surfaces as it is, and is not tried again, whatever it throws', async () => {
    for (const thrown of [new RangeError('no'), new ExpectedVersionError('other', 1, 2), 'a text']) {
      const decide = vi.fn<() => never>(() => {
        throw thrown
      })
      await expect(accounts().execute('bob', decide)).rejects.toBe(thrown)
      expect(decide).toHaveBeenCalledOnce()
    }
    expect(await eventsOf('bob')).toEqual([])
  })

  it('writes its metadata to each of its events, and each may add to it', async () => {
    const own = { ...credited(1), metadata: { actor: 'ada', extra: 1 } }
    await accounts().execute('bob', () => [credited(1), own], { metadata: { actor: 'bob', tenant: 't' } })
    const events = await eventsOf('bob')
    expect(events.map(({ metadata }) => metadata)).toEqual([
      { actor: 'bob', tenant: 't' },
      { actor: 'ada', tenant: 't', extra: 1 },
    ])
  })

  it('gives what it wrote as it will be read: exactly, and by the schema', async () => {
    const events = defineEvents({ Named: z.object({ name: z.string().transform((name) => name.toUpperCase()) }) })
    const people = createCommands({
      store,
      events,
      initial: () => [] as readonly string[],
      on: { Named: (names, { data }) => [...names, data.name] },
    })
    const time = new Date(Date.UTC(2026, 0, 1))
    const { state, events: written } = await people.execute('p', () => [
      { type: 'Named', data: { name: 'ada' }, time },
      { type: 'Named', json: '{ "name": "bob" }' },
    ])
    expect(state).toEqual(['ADA', 'BOB'])
    const read = await all(createLog({ store, events }).readKey('p'))
    expect(read).toMatchObject(written)
    expect(written[0]?.time).toBe('2026-01-01T00:00:00.000Z')
  })

  it('folds a long stream page by page, and lets others run meanwhile', async () => {
    const many = Array.from({ length: 2_500 }, () => credited(1))
    await createLog({ store }).append('long', many)
    const reads = vi.spyOn(store.log, 'readKey')
    const turns = vi.fn<() => Promise<void>>(() => systemRuntime.timers.yield())
    const done = await accounts({ timers: { ...systemRuntime.timers, yield: turns } }).execute('long', () => [
      debited(1),
    ])
    expect(done).toMatchObject({ version: 2_501, state: { balance: 2_499 } })
    expect(reads.mock.calls.map(([, after, { events }]) => [after, events])).toEqual(
      [0, 1_000, 2_000, 2_500].map((after) => [after, 1_000]),
    )
    expect(turns).toHaveBeenCalledTimes(2)
  })
})

describe('when somebody else appends first', () => {
  /** Another one appends to the key each time it decides, so many times. */
  function outrun(times: number) {
    let left = times
    return async (state: Account) => {
      if (left-- > 0) await createLog({ store }).append('bob', [credited(1)])
      return [credited(state.balance * 100)]
    }
  }

  it('decides again on the newer state, and reads only what is new', async () => {
    await createLog({ store }).append('bob', [credited(1), credited(1)])
    const reads = vi.spyOn(store.log, 'readKey')
    const done = await accounts().execute('bob', outrun(2))
    expect(done).toMatchObject({ outcome: 'executed', version: 5, state: { balance: 404 } })
    const afters = reads.mock.calls.map(([, after]) => after)
    expect([...new Set(afters)]).toEqual([0, 2, 3, 4])
  })

  it('waits before, each time longer, with chance, up to the cap', async () => {
    const most = impatient(() => 2 ** 32 - 1)
    await accounts(most.runtime).execute('bob', outrun(3))
    expect(most.waits.map(Math.round)).toEqual([50, 100, 200])
    const least = impatient(() => 0)
    await accounts({ ...least.runtime, retry: { times: 7, initial: '10ms', factor: 3, cap: '0.5s' } }).execute(
      'bob',
      outrun(7),
    )
    expect(least.waits).toEqual([5, 15, 45, 135, 250, 250, 250])
  })

  it('gives up after the last time, and says how often it tried', async () => {
    await expect(accounts().execute('bob', outrun(4))).rejects.toMatchObject({
      code: 'EXPECTED_VERSION',
      tries: 4,
      expected: 3,
      actual: 4,
      message: expect.stringContaining('after 4 attempts'),
    })
    expect(await eventsOf('bob')).toHaveLength(4)
  })

  it('gives up at once when it shall not try again', async () => {
    const { waits, runtime } = impatient()
    const decide = vi.fn<(state: Account) => Promise<ReturnType<typeof credited>[]>>(outrun(9))
    await expect(accounts({ ...runtime, retry: false }).execute('bob', decide)).rejects.toMatchObject({ tries: 1 })
    expect(decide).toHaveBeenCalledOnce()
    expect(waits).toEqual([])
  })

  it('sixteen at once keep the books right, whoever gets through', async () => {
    const bob = createCommands({ store, ...fold, retry: { times: 40, initial: '1ms', cap: '20ms' } })
    const asked = Array.from({ length: 16 }, () =>
      bob.execute('bob', ({ balance }) => [balance < 10 ? credited(balance + 1) : debited(3)]),
    )
    const versions = (await Promise.all(asked)).map(({ version }) => version)
    expect(versions.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, i) => i + 1))
    // One after the other: 1, 3, 7, 15, then less by three until it is below ten, and so on.
    let balance = 0
    for (let i = 0; i < 16; i++) balance += balance < 10 ? balance + 1 : -3
    expect((await bob.execute('bob', () => undefined)).state.balance).toBe(balance)
  })
})

describe('a signal', () => {
  it('ends it before it begins', async () => {
    const decide = vi.fn<() => undefined>()
    const signal = AbortSignal.abort(new Error('enough'))
    await expect(accounts().execute('bob', decide, { signal })).rejects.toThrow('enough')
    expect(decide).not.toHaveBeenCalled()
  })

  it('ends it after the decision, and nothing is written', async () => {
    const abort = new AbortController()
    const decide = () => {
      abort.abort(new Error('enough'))
      return [credited(1)]
    }
    await expect(accounts().execute('bob', decide, { signal: abort.signal })).rejects.toThrow('enough')
    expect(await eventsOf('bob')).toEqual([])
  })

  it('ends the wait before the next time', async () => {
    const abort = new AbortController()
    const decide = vi.fn<() => Promise<ReturnType<typeof credited>[]>>(async () => {
      await createLog({ store }).append('bob', [credited(1)])
      return [credited(1)]
    })
    const timers: Runtime['timers'] = {
      ...systemRuntime.timers,
      sleep: (ms, signal) => {
        setTimeout(() => abort.abort(new Error('enough')), 1)
        return systemRuntime.timers.sleep(ms * 1_000, signal)
      },
    }
    await expect(accounts({ timers }).execute('bob', decide, { signal: abort.signal })).rejects.toThrow('enough')
    expect(decide).toHaveBeenCalledOnce()
  })

  it('ends the wait before what is in doubt is appended again', async () => {
    const abort = new AbortController()
    const append = vi.fn<LogStore['append']>(() => {
      abort.abort(new Error('enough'))
      return Promise.reject(new StoreError('STORE_UNAVAILABLE', 'It is away.'))
    })
    const bob = accounts({ store: withAppend(append) })
    await expect(bob.execute('bob', () => [credited(1)], { signal: abort.signal })).rejects.toThrow('enough')
    expect(append).toHaveBeenCalledOnce()
  })
})

describe('a command with an idempotency key', () => {
  const content = { amount: 5, to: { name: 'bob', bank: 'x' } }
  const again = { idempotencyKey: 'deposit-1', content: { to: { bank: 'x', name: 'bob' }, amount: 5 } }

  it('runs once, and comes to the same the second time, whatever happened since', async () => {
    const bob = accounts()
    await bob.execute('bob', () => [credited(1)])
    const first = await bob.execute('bob', () => [credited(5), credited(6)], { idempotencyKey: 'deposit-1', content })
    await bob.execute('bob', () => [debited(12)], { idempotencyKey: 'something else' })
    const decide = vi.fn<() => undefined>()
    const second = await accounts().execute('bob', decide, again)
    expect(second).toEqual({ ...first, outcome: 'repeated' })
    expect(second).toMatchObject({ version: 3, position: 3, state: { balance: 12 } })
    expect(decide).not.toHaveBeenCalled()
    expect(await eventsOf('bob')).toHaveLength(4)
  })

  it('is a conflict with other content, and nothing is written', async () => {
    const bob = accounts()
    await bob.execute('bob', () => [credited(5)], { idempotencyKey: 'deposit-1', content })
    const other = { idempotencyKey: 'deposit-1', content: { ...content, amount: 6 } }
    await expect(bob.execute('bob', () => [credited(6)], other)).rejects.toMatchObject({
      code: 'COMMAND_CONFLICT',
      name: 'CommandConflictError',
      key: 'bob',
      idempotencyKey: 'deposit-1',
      version: 1,
    })
    expect(await eventsOf('bob')).toHaveLength(1)
  })

  it('is known by the key alone where one of the two says no content', async () => {
    const bob = accounts()
    await bob.execute('bob', () => [credited(5)], { idempotencyKey: 'with', content })
    await bob.execute('bob', () => [credited(5)], { idempotencyKey: 'without' })
    expect(await bob.execute('bob', () => [credited(5)], { idempotencyKey: 'with' })).toMatchObject({ version: 1 })
    const late = await bob.execute('bob', () => [credited(5)], { idempotencyKey: 'without', content })
    expect(late).toMatchObject({ outcome: 'repeated', version: 2 })
  })

  it('is one for each key, and leaves no trace when it decides nothing', async () => {
    const both = accounts()
    const once = { idempotencyKey: 'bonus' }
    expect(await both.execute('bob', () => [], once)).toMatchObject({ outcome: 'unchanged' })
    for (const key of ['bob', 'eve'])
      expect(await both.execute(key, () => [credited(1)], once)).toMatchObject({ outcome: 'executed', version: 1 })
  })

  it('asked for at the same moment is executed once', async () => {
    for (const retry of [undefined, false] as const) {
      const key = `bob ${retry}`
      const commands = createCommands({ store, ...fold, ...(retry === false && { retry }) })
      const asked = Array.from({ length: 16 }, () =>
        commands.execute(key, () => [credited(1), credited(2)], { idempotencyKey: 'both', content: 1 }),
      )
      const done = await Promise.all(asked)
      expect(done.filter(({ outcome }) => outcome === 'executed')).toHaveLength(1)
      for (const { version, state, events } of done) {
        expect([version, state.balance]).toEqual([2, 3])
        expect(events).toEqual(done[0]?.events)
      }
      expect(await eventsOf(key)).toHaveLength(2)
    }
  })

  it.each([{}, { retry: false } as const])(
    'asked for at the same moment with other content is executed once, and a conflict: %o',
    async (options) => {
      const bob = accounts(options)
      const asked = [1, 2, 3].map((amount) =>
        bob.execute('bob', () => [credited(1)], { idempotencyKey: 'both', content: { amount } }),
      )
      const settled = await Promise.allSettled(asked)
      const came = settled.map((one) => (one.status === 'rejected' ? String(one.reason.code) : one.value.outcome))
      expect(came.toSorted()).toEqual(['COMMAND_CONFLICT', 'COMMAND_CONFLICT', 'executed'])
      expect(await eventsOf('bob')).toHaveLength(1)
    },
  )

  it('is not taken for another one whose metadata came along', async () => {
    const both = accounts()
    const once = { idempotencyKey: 'transfer' }
    const { events } = await both.execute('bob', () => [credited(1)], once)
    const metadata = { ...events[0]?.metadata, causationId: 'x' }
    // As people do, who hand on what they got; here with and without us.
    await createLog({ store }).append('eve', [{ ...credited(1), metadata }])
    await both.execute('ada', () => [credited(1)], { metadata })
    for (const key of ['eve', 'ada'])
      expect(await both.execute(key, () => [credited(1)], once)).toMatchObject({ outcome: 'executed', version: 2 })
    const [copied] = await eventsOf('ada')
    expect(copied?.metadata).toEqual({ causationId: 'x' })
  })

  it('refuses metadata under the name that is ours, but lets all others be', async () => {
    const bob = accounts()
    await expect(bob.execute('bob', () => [credited(1)], { metadata: { holdfast: 'yes' } })).rejects.toMatchObject({
      code: 'EVENT_FIELD_INVALID',
      path: 'events[0].metadata.holdfast',
    })
    await bob.execute('bob', () => [credited(1)], { idempotencyKey: 'x', metadata: { command: 'deposit' } })
    const [event] = await eventsOf('bob')
    expect(event?.metadata).toEqual({ command: 'deposit', holdfast: { command: { id: 'x', event: event?.id } } })
  })

  it('is not put off by what somebody else has written there', async () => {
    for (const holdfast of [null, 'x', 5, { command: null }, { command: { id: 'x' } }])
      await createLog({ store }).append('bob', [{ ...credited(1), metadata: { holdfast } }])
    expect(await accounts().execute('bob', () => [credited(1)], { idempotencyKey: 'x' })).toMatchObject({ version: 6 })
  })
})

describe('when the outcome of an append is unknown', () => {
  const lost = () => new StoreError('STORE_UNAVAILABLE', 'The connection was lost.')
  const ways = [{}, { idempotencyKey: 'once', content: 1 }]

  it.each(ways)('finds it in the log, and says what came of it: %o', async (options) => {
    const decide = vi.fn<() => ReturnType<typeof credited>[]>(() => [credited(1), credited(2)])
    const cut = withAppend(async (...args) => {
      await store.log.append(...args)
      throw lost()
    })
    // One for both, with numbers that differ: otherwise both draw the same ids in one millisecond.
    let drawn = 0
    const { runtime } = impatient(() => drawn++)
    const done = await accounts({ store: cut, ...runtime }).execute('bob', decide, options)
    expect(done).toMatchObject({ outcome: 'executed', version: 2, position: 2, state: { balance: 3 } })
    expect(decide).toHaveBeenCalledOnce()
    expect(await eventsOf('bob')).toMatchObject(done.events)
    // Also without a second time.
    const hasty = accounts({ store: cut, retry: false, ...runtime })
    expect(await hasty.execute('bob', decide)).toMatchObject({ outcome: 'executed', version: 4 })
  })

  it.each(ways)('does not find it there, and appends it: %o', async (options) => {
    let calls = 0
    const cut = withAppend((...args) => (++calls === 1 ? Promise.reject(lost()) : store.log.append(...args)))
    const done = await accounts({ store: cut }).execute('bob', () => [credited(1)], options)
    expect(done).toMatchObject({ outcome: 'executed', version: 1 })
    expect(calls).toBe(2)
  })

  it.each(ways)('appends once, even if the one that was lost comes late: %o', async (options) => {
    let late: (() => Promise<unknown>) | undefined
    const cut = withAppend(async (...args) => {
      if (late) {
        await late()
        return store.log.append(...args)
      }
      late = () => store.log.append(...args)
      throw lost()
    })
    const done = await accounts({ store: cut }).execute('bob', () => [credited(1)], options)
    expect(done).toMatchObject({ outcome: 'executed', version: 1 })
    const events = await eventsOf('bob')
    expect(events).toHaveLength(1)
    expect(events).toMatchObject(done.events)
  })

  it('goes on through an outage, and surfaces one that lasts', async () => {
    /** Runs a command on an empty key while so many calls of the store fail, and tells how many there were. */
    const during = async (key: string, isDown: (call: number) => boolean) => {
      let calls = 0
      const call = <T>(what: string, ask: () => Promise<T>) =>
        isDown(++calls) ? Promise.reject(new StoreError('STORE_UNAVAILABLE', `Call ${calls}, ${what}.`)) : ask()
      const log: LogStore = {
        ...store.log,
        append: (...args) => call('append', () => store.log.append(...args)),
        readKey: (...args) => call('read', () => store.log.readKey(...args)),
      }
      const done = await accounts({ store: { log } })
        .execute(key, () => [credited(1)])
        .catch(({ message }: StoreError) => ({ message }))
      return { calls, done }
    }
    // It reads, and appends four times.
    expect(await during('bob', (call) => call >= 2 && call <= 4)).toMatchObject({
      calls: 5,
      done: { outcome: 'executed', version: 1 },
    })
    expect(await during('eve', (call) => call >= 2)).toEqual({ calls: 6, done: { message: 'Call 5, append.' } })
    // Nothing was sent yet: the caller knows where it stands.
    expect(await during('ada', () => true)).toEqual({ calls: 1, done: { message: 'Call 1, read.' } })
    expect([await eventsOf('bob'), await eventsOf('eve'), await eventsOf('ada')]).toMatchObject([[{}], [], []])
  })

  it('does not decide anew while the first decision may still arrive', async () => {
    const decide = vi.fn<() => ReturnType<typeof credited>[]>(() => [])
    decide.mockReturnValueOnce([credited(1)])
    let late: (() => Promise<unknown>) | undefined
    const cut = withAppend(async (...args) => {
      if (!late) {
        late = () => store.log.append(...args)
        throw lost()
      }
      // What was lost arrives, and others come after it.
      await late()
      await createLog({ store }).append('bob', [credited(5)])
      return store.log.append(...args)
    })
    const done = await accounts({ store: cut }).execute('bob', decide)
    expect(done).toMatchObject({ outcome: 'executed', version: 1, position: 1, state: { balance: 1 } })
    expect(decide).toHaveBeenCalledOnce()
    expect(await eventsOf('bob')).toHaveLength(2)
  })

  it('decides anew when somebody else was first, and the first decision can not arrive any more', async () => {
    let calls = 0
    const cut = withAppend(async (...args) => {
      if (++calls > 1) return store.log.append(...args)
      await createLog({ store }).append('bob', [credited(5)])
      throw lost()
    })
    const done = await accounts({ store: cut }).execute('bob', ({ balance }) => [credited(balance + 1)])
    expect(done).toMatchObject({ outcome: 'executed', version: 2, state: { balance: 11 } })
    expect(calls).toBe(3)
  })

  it('surfaces what is no question of time at once', async () => {
    const refused = new StoreError('STORE_REFUSED', 'No right to.')
    const append = vi.fn<LogStore['append']>(() => Promise.reject(refused))
    await expect(accounts({ store: withAppend(append) }).execute('bob', () => [credited(1)])).rejects.toBe(refused)
    expect(append).toHaveBeenCalledOnce()
  })
})

describe('the fold', () => {
  it('that throws on what is in the log tells where', async () => {
    await createLog({ store }).append('bob', [credited(1), debited(5)])
    await expect(accounts().execute('bob', () => undefined)).rejects.toMatchObject({
      code: 'FOLD_FAILED',
      message: expect.stringContaining('version 2 of "bob", a Debited: that is too much'),
      cause: expect.any(RangeError),
    })
  })

  it('sees what was decided before it is written: what it can not take is not', async () => {
    await expect(accounts().execute('bob', () => [credited(1), debited(5)])).rejects.toMatchObject({
      code: 'FOLD_FAILED',
    })
    expect(await eventsOf('bob')).toEqual([])
  })

  it('can not change a state in place, nor can a decision', async () => {
    const bob = createCommands({
      store,
      events: bank,
      initial: () => ({ list: [] as number[] }),
      on: {
        Credited: (state, { data }) => ({ list: [...state.list, data.amount] }),
        Debited: (state) => {
          state.list.pop()
          return state
        },
      },
    })
    await bob.execute('bob', () => [credited(1), credited(2)])
    await expect(bob.execute('bob', () => [debited(1)])).rejects.toMatchObject({ cause: expect.any(TypeError) })
    await expect(
      bob.execute('bob', (state) => {
        state.list.push(3)
        return []
      }),
    ).rejects.toThrow(TypeError)
  })

  it.for([
    ['a map', new Map(), 'state.value is an instance of Map'],
    ['a date', new Date(0), 'state.value is an instance of Date'],
    ['a promise', Promise.resolve(), 'state.value is an instance of Promise'],
    ['a function', () => 1, 'state.value is a function'],
  ] as const)('refuses %s in the state, which nobody could freeze', async ([, value, message]) => {
    const of = (at: 'initial' | 'later') =>
      createCommands({
        store,
        events: bank,
        initial: (): object => (at === 'initial' ? { value } : {}),
        on: { Credited: (state) => (at === 'initial' ? state : { list: [], value }) },
      })
    for (const at of ['initial', 'later'] as const)
      await expect(of(at).execute('bob', () => [credited(1)])).rejects.toMatchObject({
        code: 'FOLD_STATE',
        message: expect.stringContaining(message),
      })
    expect(await eventsOf('bob')).toEqual([])
  })

  it('must be synchronous, and one that is not ends no process', async () => {
    const later = createCommands({
      store,
      events: bank,
      initial: () => 0,
      on: { Credited: (() => Promise.reject(new Error('too late'))) as never },
    })
    await expect(later.execute('bob', () => [credited(1)])).rejects.toMatchObject({
      code: 'FOLD_STATE',
      message: expect.stringContaining('A fold must be synchronous'),
    })
  })

  it('may hold what JSON would not', async () => {
    const bob = createCommands({
      store,
      events: bank,
      initial: () => undefined as { total: bigint; last?: number | undefined } | undefined,
      on: { Credited: (state, { data }) => ({ total: (state?.total ?? 0n) + BigInt(data.amount), last: undefined }) },
    })
    expect((await bob.execute('bob', () => [credited(1), credited(2)])).state).toEqual({ total: 3n, last: undefined })
  })

  it('refuses a stream with events that the catalog does not know: it would decide on half of it', async () => {
    await createLog({ store }).append('bob', [{ type: 'Frozen', data: {} }])
    await expect(accounts().execute('bob', () => [credited(1)])).rejects.toMatchObject({ code: 'EVENT_TYPE_UNKNOWN' })
  })
})

describe('what can not be right is refused', () => {
  it.for([
    ['a list that is none', 5, 'OPTION_INVALID'],
    ['one event without a list', credited(1), 'OPTION_INVALID'],
    ['null', null, 'OPTION_INVALID'],
    ['no event', ['x'], 'EVENT_FIELD_INVALID'],
    ['an id', [{ ...credited(1), id: 'mine' }], 'EVENT_FIELD_INVALID'],
    ['metadata that is none', [{ ...credited(1), metadata: 'x' }], 'EVENT_FIELD_INVALID'],
    ['a type that is not there', [{ type: 'Frozen', data: {} }], 'EVENT_TYPE_UNKNOWN'],
    ['data that does not fit', [credited(1), { type: 'Credited', data: { amount: 'x' } }], 'EVENT_SCHEMA'],
  ] as const)('in a decision: %s', async ([, decided, code]) => {
    await expect(accounts().execute('bob', () => decided as never)).rejects.toMatchObject({ code })
    expect(await eventsOf('bob')).toEqual([])
  })

  it.for([
    { idempotencyKey: '' },
    { idempotencyKey: 'a\nb' },
    { idempotencyKey: 'x', content: 5n },
    { idempotencyKey: 'x', content: { at: new Date(0) } },
    { content: 1 },
    { idempotencykey: 'x' },
    { metadata: [] },
    { metadata: null },
    { signal: {} },
  ])('in the options of execute: %o', async (options) => {
    const decide = vi.fn<() => undefined>()
    await expect(accounts().execute('bob', decide, options as never)).rejects.toMatchObject({
      code: expect.stringMatching(/OPTION_INVALID|EVENT_/),
    })
    expect(decide).not.toHaveBeenCalled()
  })

  it('a key that is none, and a decision that is no function', async () => {
    await expect(accounts().execute('', () => undefined)).rejects.toMatchObject({ code: 'EVENT_FIELD_INVALID' })
    await expect(accounts().execute('bob', 5 as never)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  it.for([
    { store: Promise.resolve() },
    { initial: {} },
    { on: undefined },
    { on: { Frozen: () => ({}) } },
    { on: { Credited: 5 } },
    { events: {} },
    { retries: 3 },
    { retry: true },
    { retry: { tries: 3 } },
    { retry: { times: -1 } },
    { retry: { times: 1.5 } },
    { retry: { factor: 0.5 } },
    { retry: { initial: '5 s' } },
    { retry: { cap: -1 } },
  ])('in the options of createCommands: %o', (options) => {
    expect(() => accounts(options as never)).toThrow(
      expect.objectContaining({ code: expect.stringMatching(/OPTION_INVALID|EVENT_TYPE_UNKNOWN/) }),
    )
  })
})

it('types itself from the catalog and the initial state', () => {
  const bob = createCommands({
    store,
    events: bank,
    initial: (key) => ({ key, balance: 0 }),
    on: {
      Credited: (state, { data, type }) => {
        expectTypeOf(type).toEqualTypeOf<'Credited'>()
        return { ...state, balance: state.balance + data.amount }
      },
    },
  })
  // @ts-expect-error -- not a state
  createCommands({ store, events: bank, initial: () => ({ balance: 0 }), on: { Debited: () => ({ balance: 'x' }) } })
  const typed = async () => {
    const { state, events } = await bob.execute('bob', (before) => {
      expectTypeOf(before).toEqualTypeOf<Readonly<{ key: string; balance: number }>>()
      if (before.balance > 5) return [{ type: 'Renamed', data: { owner: 'Bob' } }]
      return [{ type: 'Credited', data: { amount: 1 } }]
    })
    expectTypeOf(state.balance).toEqualTypeOf<number>()
    expectTypeOf(events[0]?.type).toEqualTypeOf<'Credited' | 'Debited' | 'Renamed' | undefined>()
    await bob.execute('bob', async (before) => {
      if (before.balance > 5) return undefined
      return [{ type: 'Credited', data: { amount: 1 } }]
    })
    // @ts-expect-error -- no such type
    await bob.execute('bob', () => [{ type: 'Frozen', data: {} }])
    // @ts-expect-error -- not its data
    await bob.execute('bob', () => [{ type: 'Renamed', data: { amount: 1 } }])
    // @ts-expect-error -- ids are ours
    await bob.execute('bob', () => [{ type: 'Credited', data: { amount: 1 }, id: 'x' }])
  }
  expect(typed).toBeTypeOf('function')
})

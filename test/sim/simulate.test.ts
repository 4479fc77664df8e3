import { defineEvents, defineHandler, defineProjection } from 'holdfast'
import { type SimulatedApp, type SimulatedEnd, simulate } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { bank, credited } from '../fixtures.ts'

const events = Array.from({ length: 12 }, (_, i) => ({ key: `account-${i % 3}`, ...credited(i + 1) }))

/** Whom the handler calls: a bank that is told of payments. */
class Partner {
  readonly total = new Map<string, number>()
  readonly #seen = new Set<string>()

  async pay(account: string, amount: number, key: string | undefined): Promise<void> {
    if (key !== undefined && this.#seen.has(key)) return
    if (key !== undefined) this.#seen.add(key)
    this.total.set(account, (this.total.get(account) ?? 0) + amount)
  }
}

const sums = defineProjection('sums', {
  events: bank,
  initial: () => ({ sum: 0 }),
  on: { Credited: (row, { data }) => ({ sum: row.sum + data.amount }) },
})

function payments(usesKey: boolean) {
  return () => {
    const partner = new Partner()
    return {
      events,
      subscriptions: (outside: { reach<D extends object>(dependency: D): D }) => {
        const far = outside.reach(partner)
        const pay = defineHandler('pay', {
          events: bank,
          on: {
            Credited: ({ key, data }, ctx) => far.pay(key, data.amount, usesKey ? ctx.idempotencyKey : undefined),
          },
        })
        return [sums, pay]
      },
      check: async (end: SimulatedEnd) => {
        const made = Object.entries(await end.rows(sums)).map(([key, { sum }]) => [key, sum])
        expect(Object.fromEntries(partner.total)).toEqual(Object.fromEntries(made))
      },
    }
  }
}

it('finds nothing where there is nothing', async () => {
  const report = await simulate(payments(true), { seeds: 30 })
  expect(report.seeds).toBe(30)
  expect(report.kills).toBeGreaterThan(10)
})

it('finds a payment that is made twice, and shows the simplest way to it', async () => {
  const failing = simulate(payments(false), { seeds: 100 })
  await expect(failing).rejects.toThrow(
    /The simplest failing run: \d+ process(es)?; \d+ events?; pages of \d+; [a-z, -]+\./,
  )
  await expect(failing).rejects.toThrow(/calls pay/)
  await expect(failing).rejects.toThrow(/To repeat it: simulate\(app, \{ from: \d+, seeds: 1 \}\)/)
})

it('lets only that go wrong that it is told to', async () => {
  const { kills } = await simulate(payments(false), { seeds: 10, faults: ['busy', 'lost-hint'] })
  expect(kills).toBe(0)
  await expect(simulate(payments(true), { faults: ['rain'] as never })).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
})

it('names what makes two runs of one seed different', async () => {
  const app = () => ({
    events,
    subscriptions: () => [
      defineHandler('pay', {
        events: bank,
        on: {
          Credited: async () => {
            if (Math.random() < 0.5) throw new Error('by chance')
          },
        },
      }),
    ],
  })
  await expect(simulate(app, { seeds: 3 })).rejects.toThrow(/sim\/simulate\.test\.ts:\d+ calls Math\.random/)
})

/** A handler that forgets the key, and what must be true of the payments in the end. */
function careless(wanted: (end: SimulatedEnd) => readonly string[]): () => SimulatedApp {
  return () => {
    const paid: string[] = []
    const partner = { pay: async (account: string) => void paid.push(account) }
    return {
      events,
      subscriptions: (outside) => {
        const far = outside.reach(partner)
        return [defineHandler('pay', { events: bank, on: { Credited: ({ key }) => far.pay(key) } })]
      },
      check: (end) => expect(paid.toSorted()).toEqual(wanted(end).toSorted()),
    }
  }
}

async function messageOf(failing: Promise<unknown>): Promise<string> {
  const error: unknown = await failing.then(
    () => new Error('it holds'),
    (thrown: unknown) => thrown,
  )
  return (error as Error).message
}

describe('the simplest run', () => {
  it('shows what goes wrong, also where the check asks for what comes of all events', async () => {
    const all = careless(() => events.map(({ key }) => key))
    const message = await messageOf(simulate(all, { seeds: 100, faults: ['lost-answer'] }))
    expect(message).toContain('12 events; pages of 100; lost-answer.')
    expect(message).toMatch(/lost: outside\.pay #\d+ answer/)
  })

  it('is a small one where the check asks about those that were appended', async () => {
    const some = careless((end) => end.events.map(({ key }) => key))
    const failing = simulate(some, { seeds: 100, faults: ['lost-answer', 'kill'] })
    const message = await messageOf(failing)
    expect(Number(/(\d+) events?; pages/.exec(message)?.[1])).toBeLessThan(12)
    expect(message).not.toContain('no faults')
    await expect(failing).rejects.toMatchObject({ cause: { name: 'AssertionError' } })
    await expect(failing).rejects.toHaveProperty('stack', expect.stringMatching(/\n +at .*simulate\.test\.ts/))
  })

  it('tells all that was done outside, however long the story is', async () => {
    const chatty = (): SimulatedApp => {
      let calls = 0
      return {
        events: Array.from({ length: 40 }, (_, i) => ({ key: 'account-0', ...credited(i + 1) })),
        subscriptions: (outside) => {
          const count = () => outside.call('count', () => void calls++)
          return [sums, defineHandler('count', { events: bank, on: { Credited: count } })]
        },
        check: () => expect(calls).toBe(0),
      }
    }
    const message = await messageOf(simulate(chatty, { seeds: 1 }))
    expect(message.match(/calls count\n/g)).toHaveLength(40)
    expect(message.match(/ s {2}\S+: /g)).toHaveLength(60)
    expect(message).toMatch(/\(\d+ less relevant lines\)/)
  })

  it('can be seen again by what the message says', async () => {
    const some = careless((end) => end.events.map(({ key }) => key))
    const message = await messageOf(simulate(some, { seeds: 100, faults: ['lost-answer'] }))
    const [, from, faults] = /simulate\(app, { from: (\d+), seeds: 1, faults: \['(.*)'\] }\)/.exec(message) ?? []
    expect(await messageOf(simulate(some, { from: Number(from), seeds: 1, faults: [faults as 'lost-answer'] }))).toBe(
      message,
    )
  })

  it('is not looked for where nothing has to go wrong, and what is held is told', async () => {
    const broken = defineHandler('pay', {
      events: bank,
      on: { Credited: () => Promise.reject(new TypeError('no partner')) },
    })
    const message = await messageOf(simulate(() => ({ events, subscriptions: () => [broken] }), { seeds: 2 }))
    expect(message).toMatch(/^The check fails even without faults\.\npay holds all of its events/)
    expect(message).toContain('pay holds account-0 at Credited: TypeError: no partner')
  })
})

describe('an app', () => {
  it('may have events of several catalogs', async () => {
    const others = defineEvents({ Opened: z.object({}) })
    const opened = defineProjection('opened', {
      events: others,
      initial: () => ({ isOpen: false }),
      on: { Opened: () => ({ isOpen: true }) },
    })
    const app = (): SimulatedApp => ({
      events: [{ key: 'account-0', type: 'Opened', data: {} }, ...events],
      subscriptions: () => [sums, opened],
      check: async (end) => expect(await end.rows(opened)).toEqual({ 'account-0': { isOpen: true } }),
    })
    await simulate(app, { seeds: 3 })
  })

  it.for<readonly [string, unknown, RegExp]>([
    ['nothing', undefined, /returned no subscriptions and events/],
    ['a promise', Promise.resolve({}), /returned no subscriptions and events/],
    ['no events', { events: [], subscriptions: () => [sums] }, /has no events/],
    ['no subscriptions', { events, subscriptions: () => [] }, /did not return an array of subscriptions/],
    [
      'an event that does not fit',
      { events: [{ key: 'a', type: 'Credited', data: {} }], subscriptions: () => [sums] },
      /^a Credited \(1 of 1\) is refused/,
    ],
    [
      'nothing to do',
      { events: [{ key: 'a', type: 'Renamed', data: { owner: 'x' } }], subscriptions: () => [sums] },
      /No subscription handles the events/,
    ],
  ])('is refused before it is run when it is %s', async ([, app, message]) => {
    await expect(simulate(() => app as never, { seeds: 1 })).rejects.toThrow(message)
  })

  it.for(['kill', ['toString'], 3])('is not run with faults that are none: %j', async (faults) => {
    await expect(simulate(payments(true), { faults: faults as never })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })

  it('reaches what is frozen, what is in something else, and what is a function', async () => {
    const paid = new Set<string>()
    const pay = async (key: string) => void paid.add(key)
    const app = (): SimulatedApp => ({
      events,
      subscriptions: (outside) => {
        const frozen = outside.reach(Object.freeze({ pay, bank: Object.freeze({ pay }) }))
        const alone = outside.reach(pay)
        const on = {
          Credited: async ({ key }: { readonly key: string }) => {
            await frozen.pay(key)
            await frozen.bank.pay(key)
            await alone(key)
          },
        }
        return [defineHandler('pay', { events: bank, on })]
      },
      check: () => expect.fail('to see what was called'),
    })
    const message = await messageOf(simulate(app, { seeds: 1 }))
    expect(message).toMatch(/calls pay\n/)
    expect(message).toMatch(/calls bank\.pay\n/)
    expect(message).not.toContain('Held in the end')
    expect(paid.size).toBe(3)
  })
})

it('names a fold that asks for the time, also where nothing comes of it', async () => {
  const dated = defineProjection('dated', {
    events: bank,
    initial: () => ({ year: 0 }),
    on: { Credited: () => ({ year: new Date().getFullYear() }) },
  })
  const message = await messageOf(simulate(() => ({ events, subscriptions: () => [dated] }), { seeds: 1 }))
  expect(message).toMatch(
    /^The fold of dated depends on more than its events\.\n\S*simulate\.test\.ts:\d+ calls new Date/,
  )
})

it('names what makes the end of one seed different, whichever it is', async () => {
  const app = (): SimulatedApp => {
    let total = 0
    const partner = { pay: async (key: number) => void (total += key) }
    return {
      events,
      subscriptions: (outside) => {
        const far = outside.reach(partner)
        return [defineHandler('pay', { events: bank, on: { Credited: () => far.pay(Math.random()) } })]
      },
      check: () => expect(total).toBe(0),
    }
  }
  await expect(simulate(app, { seeds: 3 })).rejects.toThrow(/sim\/simulate\.test\.ts:\d+ calls Math\.random/)
})

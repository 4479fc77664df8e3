import { defineHandler, defineProjection } from 'holdfast'
import { type SimulatedEnd, simulate } from 'holdfast/testing'
import { expect, it } from 'vitest'
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
    /The simplest run that shows it: \d+ process(es)?; \d+ events?; pages of \d+; [a-z, -]+\./,
  )
  await expect(failing).rejects.toThrow(/calls pay/)
  await expect(failing).rejects.toThrow(/To see it again: simulate\(app, \{ from: \d+, seeds: 1 \}\)/)
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

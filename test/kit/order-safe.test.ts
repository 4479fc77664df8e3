import { defineHandler, defineProjection } from 'holdfast'
import { expectOrderSafe } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { allOrders, countOrders, pathBetween, someOrders } from '../../src/testing/kit/orders.ts'
import { failureOf } from './failure-of.ts'
import { balances, bank, credited, debited, Post, receipts } from './shop.ts'

const events = [credited('anna', 1), credited('bob', 2), debited('anna', 1), debited('bob', 3)]

const world = () => {
  const post = new Post()
  return { dependencies: post, observe: (key: string) => post.sentTo(key) }
}

describe('a projection', () => {
  it('by the key of its events comes to the same in every order', async () => {
    await expectOrderSafe(balances, events)
  })

  it('in which keys meet may not, and the two orders are named', async () => {
    const last = defineProjection('last', {
      events: bank,
      key: () => 'all',
      initial: () => ({ key: '' }),
      on: { Credited: (_, { key }) => ({ key }) },
    })
    const three = [credited('anna', 1), credited('bob', 2), credited('cleo', 3)]
    const error = await failureOf(expectOrderSafe(last, three))
    expect(error.message).toBe(
      [
        'last depends on the order of different keys: the result for all differs when cleo Credited comes before bob Credited.',
        '  in the order  anna Credited, bob Credited, cleo Credited',
        "  the result is { key: 'cleo' }",
        '  in the order  anna Credited, cleo Credited, bob Credited',
        "  the result is { key: 'bob' }",
        "  key is 'bob', expected 'cleo'.",
        'Only the events of one key come in order: the result of a key must depend only on its own events.',
        'HOLDFAST_SEED=1 tries the same orders again.',
      ].join('\n'),
    )
    expect(error.stack).toContain('order-safe.test.ts')
  })
})

describe('a handler', () => {
  it('that looks at its own event only does the same in every order', async () => {
    await expectOrderSafe(receipts, [credited('anna', 1), credited('bob', 2), credited('anna', 3)], { world })
  })

  it('that takes what answers last does not, when answers are late', async () => {
    const racing = (post: Post) =>
      defineHandler('racing', {
        events: bank,
        on: {
          Credited: async ({ key }) => {
            let last = 0
            const ask = (number: number) => post.send({ to: 'log', amount: number }).then(() => (last = number))
            await Promise.all([ask(1), ask(2)])
            await post.send({ to: key, amount: last })
          },
        },
      })
    const { message } = await failureOf(expectOrderSafe(racing, [credited('anna', 1)], { world }))
    expect(message).toBe(
      [
        'racing depends on when services answer: the result for anna differs.',
        '  in the order  anna Credited',
        "  the result is [ { to: 'anna', amount: 2 } ]",
        '  in the order  anna Credited (with late answers)',
        "  the result is [ { to: 'anna', amount: 1 } ]",
        '  [0].amount is 1, expected 2.',
        'Only the events of one key come in order: the result of a key must depend only on its own events.',
        'HOLDFAST_SEED=1 tries the same orders again.',
      ].join('\n'),
    )
  })

  it('that shares a variable between its lanes does not', async () => {
    const mixing = (post: Post) => {
      let amount = 0
      return defineHandler('mixing', {
        events: bank,
        on: {
          Credited: async ({ key, data }) => {
            amount = data.amount
            await post.send({ to: 'log', amount })
            await post.send({ to: key, amount })
          },
        },
      })
    }
    const { message } = await failureOf(expectOrderSafe(mixing, [credited('anna', 1), credited('bob', 2)], { world }))
    expect(message).toContain('  the result is ')
    expect(message).toMatch(/^mixing depends on /)
  })

  it('needs a world', async () => {
    await expect(expectOrderSafe(receipts(new Post()), events)).rejects.toThrow('Give world: () =>')
  })
})

describe('the orders', () => {
  const keys = ['a', 'b', 'a', 'b', 'c']

  it('are all that keep the order of each key, the given one first', () => {
    const all = [...allOrders(keys)]
    expect(all[0]).toEqual([0, 1, 2, 3, 4])
    expect(all).toHaveLength(30)
    expect(countOrders(keys, 1_000)).toBe(30)
    expect(countOrders(keys, 29)).toBe(30)
    expect(new Set(all.map(String)).size).toBe(30)
    for (const order of all) {
      expect(order.indexOf(0)).toBeLessThan(order.indexOf(2))
      expect(order.indexOf(1)).toBeLessThan(order.indexOf(3))
    }
  })

  it('are drawn by a seed', () => {
    const drawn = [...someOrders(keys, 20, 5)]
    expect(drawn[0]).toEqual([0, 1, 2, 3, 4])
    expect(drawn).toHaveLength(20)
    expect(drawn).toEqual([...someOrders(keys, 20, 5)])
    const all = new Set([...allOrders(keys)].map(String))
    for (const order of drawn) expect(all).toContain(String(order))
    expect(new Set(drawn.map(String)).size).toBeGreaterThan(5)
  })

  it('lead to each other by exchanging neighbours of different keys', () => {
    const path = pathBetween([0, 1, 2, 3, 4], [4, 1, 0, 3, 2])
    expect(path[0]).toEqual([0, 1, 2, 3, 4])
    expect(path.at(-1)).toEqual([4, 1, 0, 3, 2])
    for (const [i, order] of path.slice(1).entries()) {
      const before = path[i] as readonly number[]
      expect(order.filter((index, place) => index !== before[place])).toHaveLength(2)
    }
    const all = new Set([...allOrders(keys)].map(String))
    for (const order of path) expect(all).toContain(String(order))
  })
})

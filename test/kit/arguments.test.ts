import { defineHandler } from 'holdfast'
import { createTestEngine, expectIdempotent, expectOrderSafe, expectRebuildEqual, given } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { failureOf } from './failure-of.ts'
import { accounts, balances, bank, careless, closed, credited, debited, Post, receipts } from './shop.ts'

const events = [credited('anna', 1), credited('bob', 2)]
const world = () => {
  const post = new Post()
  return { dependencies: post, observe: (key: string) => post.sentTo(key) }
}

// A program without types may give anything. What is refused says so, and names what to give instead.
const any = (value: unknown) => value as never

describe('what would pass whatever the code does is refused', () => {
  it.for<readonly [string, () => Promise<unknown>, RegExp]>([
    ['no events for expectIdempotent', () => expectIdempotent(careless, [], { world }), /has no events/],
    ['no events for expectOrderSafe', () => expectOrderSafe(balances, []), /has no events/],
    ['no events for expectRebuildEqual', () => expectRebuildEqual(balances, []), /has no events/],
    ['no points', () => expectIdempotent(careless, events, { world, most: 0 }), /most is 0\. .*from 1/],
    ['less than none', () => expectIdempotent(careless, events, { world, most: -1 }), /most is -1/],
    ['no number', () => expectOrderSafe(careless, events, { world, most: any('x') }), /most is x/],
    ['no rows', () => given(balances).when(events).then(any(undefined)), /has no expectation/],
    ['no lanes', () => given(balances).when(events).thenHeld(any(undefined)), /has no expectation/],
    ['no outcomes', () => given(receipts(new Post())).when(events).then(any(undefined)), /an array of outcomes/],
    ['no decision', () => given(accounts).when(any('pay')).thenRefused('TypeError'), /needs a decide function/],
    [
      'no error',
      () =>
        given(accounts)
          .when(() => [])
          .thenRefused(any(undefined)),
      /The expected error/,
    ],
  ])('%s', async ([, attempt, message]) => {
    await expect(async () => attempt()).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(message) as unknown,
    })
  })

  it('events of which none goes through, with why', async () => {
    const { message } = await failureOf(expectIdempotent(receipts, [closed('anna')], { world }))
    expect(message).toContain('receipts applied none of the 1 events, so there is nothing to test.')
    const broken = () =>
      defineHandler('broken', { events: bank, on: { Credited: () => Promise.reject(new TypeError('no mailer')) } })
    const failed = await failureOf(expectOrderSafe(broken, events, { world }))
    expect(failed.message).toContain('broken applied none of the 2 events')
    expect(failed.message).toContain('no mailer')
    const held = await failureOf(expectRebuildEqual(balances, [debited('anna', 9)]))
    expect(held.message).toContain('The 1 events create no row of balances')
    expect(held.message).toContain('0 is less than 9')
  })
})

describe('what is of the wrong kind is named', () => {
  it.for<readonly [string, () => Promise<unknown>, RegExp]>([
    [
      'a handler to rebuild',
      () => expectRebuildEqual(any(receipts(new Post())), events),
      /expectRebuildEqual needs a fold/,
    ],
    ['nothing to rebuild', () => expectRebuildEqual(any(undefined), events), /expectRebuildEqual needs a fold/],
    ['a world that is there already', () => expectIdempotent(receipts, events, { world: any(world()) }), /a function/],
    ['a world of nothing', () => expectIdempotent(receipts, events, { world: any(() => ({})) }), /has no observe/],
    [
      'what makes nothing',
      () =>
        expectIdempotent(
          any(() => undefined),
          events,
          { world },
        ),
      /returned something else/,
    ],
    ['events that are none', () => expectIdempotent(receipts, any(undefined), { world }), /needs an array of events/],
    [
      'one event',
      () =>
        given(balances)
          .when(any(credited('anna', 1)))
          .then({}),
      /needs an array of events/,
    ],
    ['an event that is none', () => given(balances, any([null])).then({}), /got null as an event/],
  ])('%s', async ([, attempt, message]) => {
    await expect(async () => attempt()).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(message) as unknown,
    })
  })

  it('an event that is refused, by its place among the others', async () => {
    await using app = await createTestEngine({ subscriptions: [balances] })
    await expect(app.append([credited('anna', 1), credited('bob', any('two'))])).rejects.toMatchObject({
      code: 'EVENT_SCHEMA',
      message: expect.stringMatching(/^bob Credited \(2 of 2\) is refused: The data does not match/) as unknown,
    })
  })

  it('a seed of the environment, as such', async () => {
    process.env.HOLDFAST_SEED = 'soon'
    try {
      await expect(expectOrderSafe(balances, events)).rejects.toThrow('HOLDFAST_SEED is "soon". Give a whole number')
    } finally {
      delete process.env.HOLDFAST_SEED
    }
  })
})

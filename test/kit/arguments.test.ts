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
    ['no events for expectIdempotent', () => expectIdempotent(careless, [], { world }), /was given no events/],
    ['no events for expectOrderSafe', () => expectOrderSafe(balances, []), /was given no events/],
    ['no events for expectRebuildEqual', () => expectRebuildEqual(balances, []), /was given no events/],
    ['no points', () => expectIdempotent(careless, events, { world, most: 0 }), /most is 0\. .*from 1/],
    ['less than none', () => expectIdempotent(careless, events, { world, most: -1 }), /most is -1/],
    ['no number', () => expectOrderSafe(careless, events, { world, most: any('x') }), /most is x/],
    ['no rows', () => given(balances).when(events).then(any(undefined)), /does not say what is expected/],
    ['no lanes', () => given(balances).when(events).thenHeld(any(undefined)), /does not say what is expected/],
    ['no outcomes', () => given(receipts(new Post())).when(events).then(any(undefined)), /a list of outcomes/],
    ['no decision', () => given(accounts).when(any('pay')).thenRefused('TypeError'), /needs what decides/],
    [
      'no error',
      () =>
        given(accounts)
          .when(() => [])
          .thenRefused(any(undefined)),
      /The error that is expected/,
    ],
  ])('%s', async ([, attempt, message]) => {
    await expect(async () => attempt()).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(message) as unknown,
    })
  })

  it('events of which none goes through, with why', async () => {
    const { message } = await failureOf(expectIdempotent(receipts, [closed('anna')], { world }))
    expect(message).toContain('receipts went through with none of the 1 events, so there is nothing to find out.')
    const broken = () =>
      defineHandler('broken', { events: bank, on: { Credited: () => Promise.reject(new TypeError('no mailer')) } })
    const failed = await failureOf(expectOrderSafe(broken, events, { world }))
    expect(failed.message).toContain('broken went through with none of the 2 events')
    expect(failed.message).toContain('no mailer')
    const held = await failureOf(expectRebuildEqual(balances, [debited('anna', 9)]))
    expect(held.message).toContain('The 1 events make no row of balances')
    expect(held.message).toContain('0 is less than 9')
  })
})

describe('what is of the wrong kind is named', () => {
  it.for<readonly [string, () => Promise<unknown>, RegExp]>([
    ['a handler to rebuild', () => expectRebuildEqual(any(receipts(new Post())), events), /can be asked of a fold/],
    ['nothing to rebuild', () => expectRebuildEqual(any(undefined), events), /can be asked of a fold/],
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
      /made something else/,
    ],
    ['events that are none', () => expectIdempotent(receipts, any(undefined), { world }), /needs a list of events/],
    [
      'one event',
      () =>
        given(balances)
          .when(any(credited('anna', 1)))
          .then({}),
      /needs a list of events/,
    ],
    ['an event that is none', () => given(balances, any([null])).then({}), /was given null as an event/],
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
      message: expect.stringMatching(/^bob Credited \(2 of 2\) is refused: The data doesn't fit/) as unknown,
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

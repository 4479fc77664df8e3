import { createTestEngine, expectIdempotent, given, simulate } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { balances, credited, Post, receipts } from './shop.ts'

const events = [credited('anna', 1)]

describe('under the fake timers of a runner', () => {
  beforeEach(() => void vi.useFakeTimers({ now: 42 }))
  afterEach(() => void vi.useRealTimers())

  it('sentences come to their end', async () => {
    await given(balances)
      .when(events)
      .then({ anna: { balance: 1 } })
  })

  it('so do expectations, engines and simulations, and the time of the test stays where it was', async () => {
    const world = () => {
      const post = new Post()
      return { dependencies: post, observe: (key: string) => post.sentTo(key) }
    }
    await expectIdempotent(receipts, events, { world })
    await using app = await createTestEngine({ subscriptions: [balances] })
    await app.append(events)
    await app.advance('1d')
    expect(await app.rows(balances)).toEqual({ anna: { balance: 1 } })
    await simulate(() => ({ events, subscriptions: () => [balances] }), { seeds: 2 })
    expect(Date.now()).toBe(42)
  })
})

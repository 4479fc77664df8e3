import { createEngine, createLog, createOperator, type Store } from 'holdfast'
import { expect, it } from 'vitest'
import { balances, bank, credited, debited } from '../fixtures.ts'
import { describeStores } from '../rebuild/stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const wanted = 5
// A quick machine asks 20,000 times in 100 ms, in which there are few turns to give.
const mostQuestions = 200_000

async function begin(store: Store) {
  const log = createLog({ store, events: bank })
  for (let i = 0; i < 20; i++) await log.append(`k${i}`, [credited(1), debited(5), credited(2)])
  const engine = createEngine({ store, subscriptions: [balances], logger: silent })
  await engine.start()
  await engine.drain()
  const operator = createOperator({ store, subscriptions: [balances], by: 'ada' })
  return { engine, operator }
}

/** How often a timer of the program came up while a question was asked again and again. */
async function turnsDuring(ask: () => Promise<unknown>): Promise<number> {
  let turns = 0
  const timer = setInterval(() => turns++, 0)
  try {
    for (let asked = 0; asked < mostQuestions && turns < wanted; asked++) await ask()
    return turns
  } finally {
    clearInterval(timer)
  }
}

describeStores('a caller that asks the store again and again leaves the event loop its turns', (open) => {
  it.for(['status', 'verify', 'letters', 'stats', 'rows', 'audit'] as const)('in a loop of %s', async (question) => {
    await using place = await open()
    const { engine, operator } = await begin(place.store)
    await using running = engine
    const questions = {
      status: () => running.status(),
      verify: () => running.verify('balances'),
      letters: () => operator.letters({ subscription: 'balances' }),
      stats: () => operator.stats('balances'),
      rows: () => running.read(balances).get('k1'),
      audit: () => operator.audit(),
    }
    expect(await turnsDuring(questions[question])).toBeGreaterThanOrEqual(wanted)
  })

  it('and one long question does, too', async () => {
    await using place = await open()
    const log = createLog({ store: place.store, events: bank })
    for (let i = 0; i < 40; i++)
      await log.append(
        `k${i}`,
        Array.from({ length: 500 }, () => credited(1)),
      )
    const { engine } = await begin(place.store)
    await using running = engine
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    const { ok } = await running.verify('balances')
    clearInterval(timer)
    expect(ok).toBe(true)
    expect(turns).toBeGreaterThan(0)
  })
})

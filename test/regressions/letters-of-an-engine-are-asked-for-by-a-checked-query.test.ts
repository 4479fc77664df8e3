import { createEngine, type LetterQuery } from 'holdfast'
import { createTemporaryStore } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { balances } from '../fixtures.ts'

// `engine.letters` passed on what it was given: a list of statuses failed in the driver, and a misspelled condition selected everything.
it.for([
  { status: ['parked', 'queued'] },
  { statuses: 'parked' },
  { lane: 5 },
  { limit: 0 },
  { limit: 1_000_000 },
  { after: -1 },
])('%o is refused with a code', async (condition) => {
  await using store = await createTemporaryStore()
  const engine = createEngine({ store, subscriptions: [balances] })
  await engine.prepare()
  const query = { subscription: 'balances', ...condition } as unknown as LetterQuery
  await expect(engine.letters(query)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
})

import { createEngine, defineConfig, defineSubscription, type Subscription } from 'holdfast'
import * as postgres from 'holdfast/postgres'
import * as sqlite from 'holdfast/sqlite'
import { createMemoryStore, createTemporaryStore, defineMemoryProjection } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { bank } from '../fixtures.ts'

// The compiler refuses what it can see (test/types); a list that is typed as `Subscription[]`, it can't.

const definition = { events: bank, on: {} }

it('an engine refuses an SQL projection of another store before it starts', async () => {
  await using store = await createTemporaryStore()
  const wrong: Subscription[] = [defineSubscription(postgres.defineSqlProjection('stock', definition))]
  expect(() => createEngine({ store, subscriptions: wrong })).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(/stock is written for postgres, and the store is sqlite\. .*holdfast\/sqlite/),
    }),
  )
})

it('and takes those of its own', async () => {
  await using file = await createTemporaryStore()
  await using memory = createMemoryStore()
  const stock = sqlite.defineSqlProjection('stock', definition)
  expect(() => createEngine({ store: file, subscriptions: [stock] })).not.toThrow()
  const own = defineMemoryProjection('stock', definition)
  expect(() => createEngine({ store: memory, subscriptions: [own] })).not.toThrow()
  expect(defineConfig({ store: { sqlite: 'events.db' }, subscriptions: [stock] })).toMatchObject({})
})

it('defineSqlProjection says what to use for a fold', () => {
  const fold = { ...definition, initial: () => 0 } as never
  const hint = /use defineProjection of holdfast/
  expect(() => sqlite.defineSqlProjection('stock', fold)).toThrow(hint)
  expect(() => postgres.defineSqlProjection('stock', fold)).toThrow(hint)
})

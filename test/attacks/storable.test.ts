import { setTimeout } from 'node:timers/promises'
import {
  createEngine,
  createLog,
  defineHandler,
  definePolicy,
  failure,
  fixed,
  type Handler,
  park,
  retry,
  skip,
  type Store,
} from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createTemporaryStore } from 'holdfast/testing'
import { expect, it, vi } from 'vitest'
import { bank, countsOf, credited } from '../fixtures.ts'
import { keysOf } from '../noting.ts'
import { cloneDatabase, describeServers } from '../postgres/databases.ts'

// What a user gives or throws ends up in a commit. One value that the database refuses would stop its partition for ever.

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const patience = { timeout: 15_000, interval: 50 }

/** Whether all of them come to an end, and rightly. */
async function ends(store: Store, handler: Handler, keys: readonly string[]): Promise<boolean> {
  const log = createLog({ store, events: bank })
  for (const key of keys) await log.append(key, [credited(1)])
  await using engine = createEngine({ store, subscriptions: [handler], logger: silent })
  await engine.start()
  await vi.waitFor(async () => expect(await countsOf(engine, handler.name)).toMatchObject({ held: 0 }), patience)
  await setTimeout(100)
  await vi.waitFor(async () => {
    const { applied: done = 0, discarded = 0 } = (await countsOf(engine, handler.name)) ?? {}
    expect(done + discarded).toBe(keys.length)
  }, patience)
  return (await engine.verify(handler.name)).ok
}

it('a budget for retries does not put fractions of a millisecond into a commit', async () => {
  const store = await createTemporaryStore()
  const transient = retry({ attempts: 3, backoff: fixed('300ms') }).then(park)
  const handler = defineHandler('notify', {
    events: bank,
    failure: definePolicy({ transient, outage: false, budget: { retries: 3, per: '700ms' } }),
    on: {
      Credited: (_, { attempt }) => {
        if (attempt === 1) throw failure.transient('not now')
      },
    },
  })
  expect(await ends(store, handler, keysOf(6))).toBe(true)
  await store.close()
})

it('a window for repeats does not put fractions of a millisecond into a commit', async () => {
  const store = await createTemporaryStore()
  const dedupe = { by: 'id', window: 60_000.5 } as const
  const handler = defineHandler('notify', { events: bank, dedupe, on: { Credited: () => 'sent' } })
  expect(await ends(store, handler, keysOf(3))).toBe(true)
  await store.close()
})

describeServers('a handler on a server', (server) => {
  it('writes whatever text is said about an event', async () => {
    await using database = await cloneDatabase(server)
    const store = await createPostgresStore({ connection: database.url })
    const thrown: Record<string, () => unknown> = {
      said: () => failure.skip('a zero: \0, and half a pair: \ud800'),
      policy: () => failure.transient('\0'),
      permanent: () =>
        Object.assign(new Error('\0\ud800'), { name: '\0', code: '\0', stack: '\0', cause: new Error('\0') }),
    }
    const handler = defineHandler('notify', {
      events: bank,
      dedupe: { by: 'id', window: 60_000.5 },
      failure: definePolicy({ transient: skip('zero \0 and half \udc00'), unknown: skip('\0'), outage: false }),
      on: {
        Credited: ({ key }) => {
          if (thrown[key]) throw thrown[key]()
          return '\0\ud800'
        },
      },
    })
    expect(await ends(store, handler, [...Object.keys(thrown), 'plain'])).toBe(true)
    await store.close()
  })
})

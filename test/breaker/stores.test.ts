import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Breaker, createBreaker, createOperator, type Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import { describe, expect, it } from 'vitest'
import { cloneDatabase, describeNewest } from '../postgres/databases.ts'

// The same promises on the stores there are, with as many connections as processes, in real time.

const options = { name: 'https://example.com/hook?q=ü', opens: { failures: 12 }, cooldown: '1200ms' } as const

async function sharesOneBreaker(stores: readonly Store[]): Promise<void> {
  const errors: unknown[] = []
  const breakers = stores.map((store) =>
    createBreaker({ ...options, store, onStoreError: (_, error) => errors.push(error) }),
  )
  const [first] = breakers as [Breaker]
  const operator = createOperator({ store: stores.at(-1) as Store, subscriptions: [], by: 'ada' })

  await Promise.all(breakers.map((breaker) => fail(breaker, 4)))
  expect(await first.state()).toEqual({ state: 'closed' })
  await Promise.all(breakers.map((breaker) => fail(breaker, 4)))
  await forSeconds(1)
  for (const breaker of breakers) expect(await breaker.state()).toMatchObject({ state: 'open', openings: 1 })

  await forSeconds(0.5)
  const entries = await Promise.all([...breakers, ...breakers].map((breaker) => breaker.enter()))
  const probes = entries.filter(({ entry }) => entry === 'probe')
  expect(probes).toHaveLength(1)
  for (const [index, entry] of entries.entries()) await breakers[index % breakers.length]?.report(entry, true)
  expect((await stores[0]?.breakers.list())?.map(({ name, state }) => [name, state.state])).toEqual([
    [options.name, 'closed'],
  ])

  await operator.isolateBreaker(options.name, 'maintenance')
  await forSeconds(1)
  await expect(first.call(() => 1)).rejects.toMatchObject({ code: 'BREAKER_OPEN', state: 'isolated' })
  await operator.resetBreaker(options.name, 'it is over')
  expect(errors).toEqual([])
}

async function fail(breaker: Breaker, times: number): Promise<void> {
  const entries = await Promise.all(Array.from({ length: times }, () => breaker.enter()))
  for (const entry of entries) await breaker.report(entry, false)
}

function forSeconds(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000 + 10))
}

describe('SQLite', () => {
  it('has one breaker for all who share the file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-breaker-'))
    {
      const file = join(folder, 'store.db')
      await using one = await createSqliteStore({ file })
      await using two = await createSqliteStore({ file })
      await expect(sharesOneBreaker([one, two])).resolves.toBeUndefined()
    }
    await rm(folder, { recursive: true })
  })
})

describeNewest('a breaker', (server) => {
  it('is one for all who share the schema', async () => {
    await using database = await cloneDatabase(server)
    await using one = await createPostgresStore({ connection: database.url })
    await using two = await createPostgresStore({ connection: database.url })
    await expect(sharesOneBreaker([one, two])).resolves.toBeUndefined()
  })
})

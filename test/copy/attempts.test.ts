import { copyStore, createOperator, definePolicy, failure, fixed, park, retry } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { createWorld, type World } from '../fixtures.ts'
import { fill, noting, run } from '../noting.ts'
import { describeServers } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'

/** One letter that was tried 40 times, and then parked. */
async function tryOften(world: World) {
  await fill(world, ['a'], 1)
  const { handler, calls } = noting(world, ({ ctx }) => Promise.reject(failure.transient(`no ${ctx.attempt}`)), {
    failure: definePolicy({ transient: retry({ attempts: 40, backoff: fixed('1s') }).then(park), outage: false }),
  })
  await run(world, world.engine([handler]), 60_000)
  return { handler, attempts: calls.map(({ ctx }) => ctx.attempt) }
}

const count = (from: number, length: number) => Array.from({ length }, (_, i) => from + i)

describe('a letter that was tried very often', () => {
  it('is not larger for it, knows how often, and is exported so', async () => {
    await using world = await createWorld()
    const { handler, attempts } = await tryOften(world)
    // The handler is told how often it was tried, and not how much of that is kept.
    expect(attempts).toEqual(count(1, 40))
    const operator = createOperator({ store: world.store, subscriptions: [handler], by: 'ada' })
    const { letter } = await operator.letter({ subscription: handler.name, position: 1 })
    expect(letter).toMatchObject({ status: 'parked', attemptsTotal: 40, failure: { message: 'no 40' } })
    expect(letter.attempts.map((attempt) => attempt.failure.message)).toEqual(
      [...count(1, 5), ...count(21, 20)].map((n) => `no ${n}`),
    )
    const query = { subscription: handler.name }
    const lines: string[] = []
    for await (const line of operator.exportLetters({ query, reason: 'x' })) lines.push(line)
    expect(JSON.parse(lines[1] ?? '')).toMatchObject({ attemptsTotal: 40, attempts: { length: 25 } })
    expect(Buffer.byteLength(lines[1] ?? '')).toBeLessThan(60_000)
  })
})

describeServers('a copy of a letter that was tried very often', (server) => {
  const schemas = useSchemas(server)

  it('has the same attempts, and as many', async () => {
    await using world = await createWorld()
    await using to = await schemas.open(schemas.readySchema())
    const { handler } = await tryOften(world)
    const query = { subscription: handler.name }
    const before = await world.store.letters.list(query)
    expect(before).toMatchObject([{ attemptsTotal: 40 }])
    await copyStore({ from: world.store, to, force: true })
    expect(await to.letters.list(query)).toEqual(before)
  })
})

import { expect, test } from 'vitest'
import { createDatabase, describeServers, servers } from '../postgres/databases.ts'
import { runGap } from './run.ts'

describeServers('the safe horizon', (server) => {
  const isFirst = server === servers[0]

  test('readers skip nothing, repeat nothing and keep the order', { timeout: 180_000 }, async () => {
    await using database = await createDatabase(server)
    await using other = await createDatabase(server)
    // `npm run gap` is the long form.
    const appends = isFirst ? 6_000 : 3_000
    const result = await runGap({ url: database.url, otherUrl: other.url, appends, rounds: 0 })
    expect(result).toMatchObject({ skipped: 0, inverted: 0, twice: 0 })
    // Without these the run would prove nothing.
    expect(result.gapsSeen).toBeGreaterThan(0)
    expect(result.naiveReaderSkipped).toBeGreaterThan(0)
  })
})

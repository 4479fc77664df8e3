import { expect, test } from 'vitest'
import { createDatabase, describeServers } from '../postgres/databases.ts'
import { runGap } from './run.ts'

describeServers('the safe horizon', (server) => {
  // The oldest server is asked in the tests of the log; here it is the same statements again.
  test.skipIf(!server.name.includes(' 18'))('readers skip nothing, repeat nothing and keep the order', async () => {
    await using database = await createDatabase(server)
    await using other = await createDatabase(server)
    const result = await runGap({ url: database.url, otherUrl: other.url, appends: 20_000, rounds: 2 })
    expect(result).toMatchObject({ skipped: 0, inverted: 0, twice: 0 })
    // Without these the run would prove nothing.
    expect(result.gapsSeen).toBeGreaterThan(0)
    expect(result.naiveReaderSkipped).toBeGreaterThan(0)
  })
})

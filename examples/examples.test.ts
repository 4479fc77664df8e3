import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createDatabase, describeServers } from '../test/postgres/databases.ts'
import { run } from './run.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-examples-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('the quickstart', () => {
  test('prints the row of one account and the held lane of the other, the second time as well', async () => {
    // The second time on the same file, the appends are repetitions and everything is done already.
    for (const time of ['first', 'second']) {
      const { code, stdout, stderr } = await run('quickstart.ts', [join(folder, 'quickstart.db')])
      expect(code).toBe(0)
      // What needs a person is said on stderr, when it happens.
      expect(stderr.includes('lanes are held')).toBe(time === 'first')
      expect(stdout).toContain("{ key: 'alice', version: 2, data: { balance: 70 } }")
      expect(stdout).toContain('bob parked FundsDebited Insufficient funds')
      expect(stdout).toContain('bob queued FundsCredited')
    }
  })
})

/** What every SQL projection prints, however it writes its SQL. */
const stock = /^apples 6\npears 2\npears parked p2 .*check constraint.*\npears queued p3 \n$/i

describe('a projection in SQL', () => {
  test('with node:sqlite holds what breaks a rule of its table', async () => {
    for (const _ of ['first', 'second']) {
      expect(await run('sql/sqlite.ts', [join(folder, 'stock.db')])).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(stock),
      })
    }
  })
})

describeServers('the examples', (server) => {
  test.each(['kysely', 'drizzle'])(
    'a projection in SQL with %s holds what breaks a rule of its table',
    async (name) => {
      await using database = await createDatabase(server)
      for (const _ of ['first', 'second']) {
        expect(await run(`sql/${name}.ts`, [database.url])).toMatchObject({
          code: 0,
          stdout: expect.stringMatching(stock),
        })
      }
    },
  )

  test('an append in a transaction of its own comes with its row, or not at all', async () => {
    await using database = await createDatabase(server)
    for (const then of ['is placed', 'was placed before']) {
      const lines = [
        `order-1 ${then}`,
        'order-1 was placed before',
        'order-2 is not placed: new row for relation "orders" violates check constraint "orders_total_check"',
        "rows: [ { id: 'order-1', total: 250 } ]",
        'event: order-1-placed { total: 250 }',
      ]
      expect(await run('outbox.ts', [database.url])).toMatchObject({ code: 0, stdout: `${lines.join('\n')}\n` })
    }
  })
})

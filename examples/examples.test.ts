import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEngine, createLog, type Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import { Client } from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { createDatabase, describeNewest } from '../test/postgres/databases.ts'
import { balances, bank } from './bank/bank.ts'
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

describe('the commands', () => {
  test('are executed once, by two at the same moment and in a second run', async () => {
    for (const outcome of ['executed', 'repeated']) {
      const { code, stdout } = await run('commands.ts', [join(folder, 'commands.db')])
      expect(code).toBe(0)
      const [one, two, ...later] = stdout.trimEnd().split('\n')
      // Whoever was first.
      const first = new RegExp(`^machine-[12] ${outcome} \\{ version: (2, balance: 70|3, balance: 40) \\}$`)
      expect([one, two]).toEqual([expect.stringMatching(first), expect.stringMatching(first)])
      expect(later).toEqual([
        expect.stringContaining('machine-1 repeated { version: '),
        'machine-1 refused: COMMAND_CONFLICT',
        'machine-3 refused: 40 is less than 50',
        'alice { balance: 40 }',
      ])
    }
  })
})

describe('dead letters in the hands of an operator', () => {
  test('are looked at, tried, mended and let go, as their page says', async () => {
    const { code, stdout } = await run('dead-letters.ts', [join(folder, 'dead-letters.db')])
    expect(code).toBe(0)
    const page = readFileSync(new URL('../docs/how-to/dead-letters.md', import.meta.url), 'utf8')
    expect(page.split('```\n').find((block) => block.startsWith('incident'))).toBe(stdout)
  })
})

describe('a rebuild', () => {
  test('builds the next version beside the live one, and switches, as its page says', async () => {
    const { code, stdout } = await run('rebuild.ts', [join(folder, 'rebuild.db')])
    expect(code).toBe(0)
    const page = readFileSync(new URL('../docs/how-to/rebuild.md', import.meta.url), 'utf8')
    expect(page.split('```\n').find((block) => block.startsWith('version 2'))).toBe(stdout)
  })
})

describe('bugs that pass every ordinary test', () => {
  test('are found, and named with their line, as the page about tests says', async () => {
    const { code, stdout } = await run('testing/bugs.ts', [])
    expect(code).toBe(0)
    const page = readFileSync(new URL('../docs/how-to/testing.md', import.meta.url), 'utf8')
    expect(page.split('```\n').find((block) => block.startsWith('receipts is not'))).toBe(stdout.replace(/\n\n$/, '\n'))
  })
})

describe('a breaker by itself', () => {
  test('makes three calls, then refuses, and is closed after a reset', async () => {
    const name = 'https://rates.example/eur'
    const called = 'called: 503 Service Unavailable\n'
    for (const _ of ['first', 'second']) {
      expect(await run('breaker.ts', [join(folder, 'breaker.db')])).toMatchObject({
        code: 0,
        stdout: [
          `${called}${called}`,
          `${name} closed → open\n${called}`,
          'try again in 30 s\n',
          `${name} open → isolated\nnow isolated\n`,
          `${name} isolated → closed\nnow closed\n`,
        ].join(''),
      })
    }
  })
})

describe('the handler', () => {
  test('sends what can be sent once, retries, skips and parks, and sends nothing in a second run', async () => {
    const last = [
      'o3 discarded attempts: 1 a gift has no receipt',
      'o4 parked attempts: 1 The mail service said 422.',
      'o5 queued attempts: 0 waits its turn',
      'live { applied: 2, duplicate: 0, filtered: 0, held: 2, discarded: 1 }',
    ]
    const file = join(folder, 'handler.db')
    const first = await run('handler.ts', [file])
    expect(first.code).toBe(0)
    const lines = first.stdout.trimEnd().split('\n')
    expect(lines.slice(-4)).toEqual(last)
    expect(lines.slice(0, -4).toSorted()).toEqual([
      'mail to ada@mail.example 30',
      'mail to bob@busy.example 20',
      'order-2 attempt 1 failed: The mail service said 503.',
      'order-2 attempt 2 failed: The mail service said 503.',
      'order-3 attempt 1 failed: a gift has no receipt',
      'order-4 attempt 1 failed: The mail service said 422.',
    ])
    expect(await run('handler.ts', [file])).toMatchObject({ code: 0, stdout: `${last.join('\n')}\n` })
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

describe('docs/growing.md', () => {
  test('shows code that runs here, to the letter', () => {
    const root = new URL('../', import.meta.url)
    const page = readFileSync(new URL('docs/growing.md', root), 'utf8')
    const blocks = [...page.matchAll(/<!-- (\S+) -->\n```ts\n([\s\S]*?)```/g)]
    expect(blocks.length).toBe(page.match(/```ts/g)?.length)
    expect(blocks.map(([, path]) => path)).toEqual(
      ['there', 'roles', 'back'].map((name) => `examples/growing/${name}.ts`),
    )
    for (const [, path = '', code] of blocks) expect(code).toBe(readFileSync(new URL(path, root), 'utf8'))
  })

  test('gives three roles their rights', async () => {
    const { code, stdout } = await run('growing/roles.ts', [])
    expect(code).toBe(0)
    for (const role of ['migrator', 'engine', 'reader']) expect(stdout).toContain(`CREATE ROLE "bank_${role}"`)
  })
})

describeNewest('the examples', (server) => {
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

  test('a bank grows from a file into PostgreSQL, and finds the way back', async () => {
    await using database = await createDatabase(server)
    const file = join(folder, `${database.name}.db`)
    await using here = await createSqliteStore({ file })
    await createLog({ store: here, events: bank }).append('ada', [opened, credited('a2', 100)])
    await project(here)
    expect(await run('growing/there.ts', [file, database.url])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('equal: 2 events, 1 rows'),
    })

    await using there = await createPostgresStore({ connection: database.url, schema: 'bank' })
    await burnPositions(database.url)
    const log = createLog({ store: there, events: bank })
    await log.append('ada', [credited('a3', 20)])
    await log.append('bob', [{ ...opened, id: 'b1' }, credited('b2', 3)])
    for (const events of [3, 0]) {
      const back = await run('growing/back.ts', [database.url, file])
      expect(back).toMatchObject({ code: 0, stdout: `appended to the file: ${events} events\n` })
    }
    expect(await project(here)).toMatchObject({ ok: true, events: 5, rows: 2 })
    expect(await project(there)).toMatchObject({ ok: true, events: 5, rows: 2 })
  })
})

const opened = { id: 'a1', type: 'AccountOpened', data: { owner: 'Ada', overdraft: 0 } } as const

function credited(id: string, amount: number) {
  return { id, type: 'FundsCredited', data: { amount } } as const
}

async function project(store: Store) {
  await using engine = createEngine({ store, subscriptions: [balances] })
  await engine.start()
  await engine.drain()
  return engine.verify(balances.name)
}

/** As appends do that are rolled back: so the positions of the server are not those of the file any more. */
async function burnPositions(url: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(
    "SELECT nextval(pg_get_serial_sequence('bank.holdfast_events', 'position')) FROM generate_series(1, 5)",
  )
  await client.end()
}

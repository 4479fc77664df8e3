import { createEngine, createLog, createOperator } from 'holdfast'
import { defineSqlProjection } from 'holdfast/postgres'
import type { createPostgresStore } from 'holdfast/postgres'
import type { ClientBase } from 'pg'
import { expect, it } from 'vitest'
import { balances, bank, credited, debited } from '../fixtures.ts'
import { describeServers, type TestServer } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'
import { all, codeOf } from './scene.ts'

// The same as on SQLite, wherever it goes through the store; what only the operator decides is tested there.

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

const journal = (schema: string, limit: number) =>
  defineSqlProjection('journal', {
    events: bank,
    on: {
      Credited: ({ key, data }, tx: ClientBase) =>
        tx.query(`INSERT INTO ${schema}.lines (key, amount) VALUES ($1, $2)`, [key, data.amount]),
      Debited: async ({ key, data }, tx: ClientBase) => {
        await tx.query(`INSERT INTO ${schema}.lines (key, amount) VALUES ($1, $2)`, [key, -data.amount])
        if (data.amount > limit) throw new TypeError('too much')
      },
    },
  })

describeServers('an operator', (server: TestServer) => {
  const schemas = useSchemas(server)

  async function createScene() {
    const schema = schemas.readySchema()
    const store = await schemas.open(schema)
    await schemas.user.query(`CREATE TABLE ${schema}.lines (n bigserial PRIMARY KEY, key text, amount integer)`)
    const log = createLog({ store, events: bank })
    await log.append('a', [credited(1), debited(2), credited(100)])
    await log.append('b', [debited(3)])
    await run(store, schema)
    const operator = createOperator({ store, subscriptions: [balances, journal(schema, 2)], by: 'ada' })
    return { store, operator, [Symbol.asyncDispose]: () => store.close() }
  }

  async function run(store: Awaited<ReturnType<typeof createPostgresStore>>, schema: string): Promise<void> {
    await using engine = createEngine({ store, subscriptions: [balances, journal(schema, 1)], logger: silent })
    await engine.start()
    await engine.drain()
  }

  it('looks, edits, tries, asks and looks back', async () => {
    await using scene = await createScene()
    const { operator } = scene
    const letter = { subscription: 'balances', position: 2 }
    const view = await operator.letter(letter)
    expect(view).toMatchObject({ isHead: true, decoded: { data: { amount: 2 } }, lane: { letters: 2 } })
    expect(view.behind.map(({ event }) => event.position)).toEqual([3])
    expect(await operator.stateAt('balances', 'a', { before: 2 })).toMatchObject({ row: { data: { balance: 1 } } })

    expect(await operator.revise(letter, { data: { amount: 1 } }, 'typo')).toMatchObject({ number: 1 })
    const dry = await operator.dryRun('balances', { all: true })
    expect(dry.lanes.map(({ lane, verdict }) => [lane, verdict])).toEqual([
      ['a', 'pass'],
      ['b', 'fail'],
    ])
    expect(dry.lanes[0]?.changes).toMatchObject([{ after: { data: { balance: 100, seen: 3 } } }])

    const { lanes, digest } = await operator.select('balances', 'redrive', { all: true })
    expect(lanes).toBe(2)
    expect(await codeOf(operator.redrive('balances', { letter: 3 }, { reason: 'x' }))).toBe('LETTER_NOT_HEAD')
    const seen = { reason: 'x', expected: digest, canary: true } as const
    expect(await codeOf(operator.redrive('balances', { lane: 'a' }, seen))).toBe('REDRIVE_CHANGED')
    const { redrive } = await operator.redrive('balances', { all: true }, seen)
    expect(redrive).toMatchObject({ lanes: 2, stages: [1, 3, 8, 28, 128, 1_128], maxFailures: 0 })
    expect(await codeOf(operator.redrive('balances', { all: true }, { reason: 'x' }))).toBe('REDRIVE_BUSY')
    expect(await codeOf(operator.unrevise(letter, 'x'))).toBe('LETTER_BUSY')
    expect(await operator.cancel(redrive.id, 'not yet')).toBe(true)
    expect(await operator.unrevise(letter, 'x')).toMatchObject({ number: 1 })

    await operator.isolateBreaker('bank', 'they asked', { new: true })
    await operator.pause('balances', 'x')
    await operator.resume('balances', 'x')
    expect(await all(operator.exportLetters({ query: { subscription: 'balances' }, reason: 'x' }))).toHaveLength(4)
    expect((await operator.audit()).map(({ act }) => act)).toEqual([
      'letter.revise',
      'redrive',
      'redrive.cancel',
      'letter.unrevise',
      'breaker.isolate',
      'subscription.pause',
      'subscription.resume',
      'letters.export',
    ])
    expect(await operator.verifyAudit()).toMatchObject({ ok: true, entries: 8 })
  })

  it('shows what SQL would have changed, and keeps nothing', async () => {
    await using scene = await createScene()
    const { operator } = scene
    for (const time of ['first', 'second']) {
      const dry = await operator.dryRun('journal', { all: true })
      expect({ time, lanes: dry.lanes }).toMatchObject({
        time,
        lanes: [
          {
            lane: 'a',
            verdict: 'pass',
            letters: [{ outcome: { outcome: 'applied' } }, { outcome: { outcome: 'applied' } }],
            changes: [{ after: { key: 'a', amount: -2 } }, { after: { key: 'a', amount: 100 } }],
          },
          { lane: 'b', verdict: 'fail', changes: [], letters: [{ outcome: { failure: { errorType: 'TypeError' } } }] },
        ],
      })
    }
  })

  it('lets lanes go itself where nobody does, watches it, and leaves', async () => {
    await using scene = await createScene()
    const { operator, store } = scene
    await operator.revise({ subscription: 'balances', position: 2 }, { data: { amount: 1 } }, 'typo')
    const { redrive } = await operator.redrive('balances', { all: true }, { reason: 'x' })
    const watching = all(operator.watch(redrive.id, { every: '50ms' }))
    expect(await operator.ensureWorked(redrive.id)).toMatchObject({
      by: 'here',
      redrive: { status: 'done', letters: 2, byState: { done: 1, failed: 1 } },
    })
    expect((await watching).at(-1)).toMatchObject({ isOver: true, lanesDone: 2, letters: 2 })
    expect(await operator.redriveLanes(redrive.id, { state: 'failed' })).toMatchObject([
      { lane: 'b', headPosition: 4, failure: { message: 'can not take 3 from 0' } },
    ])
    const owners = (await store.subscriptions.partitions('balances')).map(({ owner }) => owner)
    expect(new Set(owners)).toEqual(new Set([undefined]))

    const discard = await operator.discard('balances', { lane: 'b' }, { reason: 'a test' })
    await operator.ensureWorked(discard.redrive.id)
    expect(await operator.letter({ subscription: 'balances', position: 4 })).toMatchObject({
      letter: { status: 'discarded', endedBy: 'ada', endedReason: 'a test' },
      lane: undefined,
    })
    await using engine = createEngine({ store, subscriptions: [balances], logger: silent })
    await engine.start()
    await engine.drain()
    expect(await engine.verify('balances')).toMatchObject({ ok: true, counts: { applied: 3, held: 0, discarded: 1 } })
    expect((await operator.stateAt('balances', 'a')).row).toMatchObject({ data: { balance: 100 } })
  })
})

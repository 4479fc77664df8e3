import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyStore, createEngine, createLog, type Store } from 'holdfast'
import { defineSqlProjection } from 'holdfast/postgres'
import { createSqliteStore } from 'holdfast/sqlite'
import type { ArchivePart } from 'holdfast/store'
import type { ClientBase } from 'pg'
import { afterAll, expect, test } from 'vitest'
import { flawOf, noEntry } from '../../src/audit/audit.ts'
import { describeServers } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'
import {
  accounts,
  bank,
  contentOf,
  counts,
  deedOf,
  engineOn,
  goOn,
  importedEvent,
  journal,
  makeOriginal,
  settle,
} from './original.ts'
import { startEngineProcess } from './run.ts'
import { operatorOf } from '../acts.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-copy-'))
afterAll(() => rmSync(folder, { recursive: true }))

describeServers('a copy of a store', (server) => {
  const schemas = useSchemas(server)
  const newFile = () => join(folder, `${schemas.newSchema()}.db`)

  async function openOriginal() {
    const file = newFile()
    const source = await makeOriginal(file)
    return { file, source, from: await createSqliteStore({ file }) }
  }

  test('has everything that the original has, except for what SQL of the user wrote', async () => {
    const { source, ...original } = await openOriginal()
    await using from = original.from
    await using to = await schemas.open(schemas.readySchema())
    expect(await copyStore({ from, to })).toEqual({ counts, left: ['journal'] })
    expect(await contentOf(to, engineOn(to, source))).toEqual(await contentOf(from, engineOn(from, source)))
  })

  test('goes on with handlers where they were, and does nothing again', async () => {
    const { from: original } = await openOriginal()
    await using from = original
    await using to = await schemas.open(schemas.readySchema())
    await copyStore({ from, to })
    expect(await to.subscriptions.load('mails', 0)).toMatchObject({
      owner: undefined,
      checkpoint: { position: 2 },
      marks: [
        [4, 6],
        [9, 9],
      ],
      tried: 11,
      trials: [{ position: 10, instance: 'process ☃' }],
    })
    const common = { since: 5, done: undefined, head: 1, headPosition: 1 }
    expect(await to.letters.heldLanes('mails', 0)).toStrictEqual([
      { lane: 'due', status: 'retrying', ...common, dueAt: 1e12, tries: 2 },
      { lane: 'going', status: 'retrying', ...common, redrive: 'before' },
      { lane: 'plain', status: 'parked', ...common },
      { lane: 'shut', status: 'waiting', ...common, tries: 1, breaker: 'smtp' },
    ])
    const letters = await to.letters.list({ subscription: 'mails' })
    expect(letters.map(({ status, endedBy, endedReason }) => [status, endedBy, endedReason])).toEqual([
      ['discarded', 'ada', 'a test'],
      ['retrying', undefined, undefined],
      ['discarded', 'policy', 'nobody to write to ☃'],
      ['discarded', 'policy', 'nobody to write to ☃'],
    ])
    const keys = ['', 'a\u{1f600}', 'mail-119', 'mail-120']
    expect(await to.inbox.find('mails', keys, 0)).toEqual(await from.inbox.find('mails', keys, 0))
    expect((await to.inbox.find('mails', keys, 0)).size).toBe(3)
    expect(await to.breakers.list()).toMatchObject([
      { name: 'pay', revision: 1 },
      { name: 'smtp', revision: 2, state: { state: 'open', openings: 3 }, record: '{"failures":2}' },
    ])
    const handler = { name: 'mails', kind: 'handler', table: undefined, start: 0, partitions: undefined } as const
    expect(await to.subscriptions.register(handler)).toEqual({ partitions: 1, version: 1 })
  })

  test('has what people did, and an audit that holds', async () => {
    const { from: original } = await openOriginal()
    await using from = original
    await using to = await schemas.open(schemas.readySchema())
    await copyStore({ from, to })
    for (const ask of [
      ({ audit }: Store) => audit.list(0, 100),
      ({ redrives }: Store) => redrives.list({ limit: 10 }),
      ({ redrives }: Store) => redrives.lanes('open', undefined, 0, 10),
      ({ redrives }: Store) => redrives.due('mails', 0, 10),
      ({ letters }: Store) => letters.incidents({ subscription: 'mails', limit: 10 }),
      ({ letters }: Store) => letters.incidents({ subscription: 'accounts', limit: 10 }),
      ({ letters }: Store) => letters.stats('accounts'),
      ({ rebuilds }: Store) => rebuilds.list('recent'),
    ]) {
      const found = await ask(to)
      expect(found).toEqual(await ask(from))
      expect(found).not.toEqual([])
    }
    const [revised] = await to.letters.list({ subscription: 'accounts', lane: 'b', status: 'parked' })
    expect(revised?.revision).toMatchObject({ number: 1, body: '{"amount": 1, "note": "\\u0000 ☃"}', by: 'ann ☃' })
    const name = { subscription: 'accounts', position: revised?.event.position ?? 0 }
    expect((await to.letters.revisions(name)).map(({ number, isTakenBack }) => [number, isTakenBack])).toEqual([
      [1, false],
      [2, true],
    ])
    // The chain goes on where the copy ends.
    await to.audit.record(deedOf('after'))
    const entries = await to.audit.list(0, 100)
    expect(entries.map(({ number }) => number)).toEqual(Array.from({ length: counts.deed + 1 }, (_, i) => i + 1))
    expect(entries.flatMap((entry, i) => flawOf(entry, entries[i - 1] ?? noEntry) ?? [])).toEqual([])
  })

  test('goes on from the same checkpoints, as the original would have', async () => {
    const { source, ...original } = await openOriginal()
    await using from = original.from
    await using to = await schemas.open(schemas.readySchema())
    await copyStore({ from, to })
    source.deliver(importedEvent('gap', 2), importedEvent('whole', 2))
    for (const store of [from, to]) {
      await goOn(store)
      const engine = engineOn(store, source)
      await operatorOf(store).resume('totals', 'closed')
      await settle(engine)
      for (const name of ['accounts', 'totals', 'recent'])
        expect(await engine.verify(name)).toMatchObject({ ok: true, differenceCount: 0 })
    }
    expect(await contentOf(to, engineOn(to, source))).toEqual(await contentOf(from, engineOn(from, source)))
  })

  test('builds a projection in SQL anew, when its table is there', async () => {
    const { from: original } = await openOriginal()
    await using from = original
    await using to = await schemas.open(schemas.readySchema())
    await copyStore({ from, to })
    const lines = `lines_${schemas.newSchema()}`
    await schemas.user.query(`CREATE TABLE ${lines} (key text, amount double precision)`)
    const same = defineSqlProjection(journal.name, {
      events: bank,
      on: {
        Credited: ({ key, data }, tx: ClientBase) =>
          tx.query(`INSERT INTO ${lines} (key, amount) VALUES ($1, $2)`, [key, data.amount]),
      },
    })
    await settle(createEngine({ store: to, subscriptions: [same], logger: silent }))
    const { rows } = await schemas.user.query(`SELECT key, amount FROM ${lines} ORDER BY amount`)
    expect(rows).toEqual([
      { key: 'c', amount: -0.1 },
      { key: 'b', amount: 1 },
      { key: 'b', amount: 2 },
      { key: 'a\u{1f600}', amount: 12.5 },
      { key: 'b', amount: 100 },
      { key: 'c', amount: 1e300 },
    ])
  })

  test('can be made of a store that nothing was written to', async () => {
    await using from = await createSqliteStore({ file: newFile() })
    await using to = await schemas.open(schemas.readySchema())
    const none = Object.fromEntries(Object.keys(counts).map((kind) => [kind, 0]))
    expect(await copyStore({ from, to })).toEqual({ counts: none, left: [] })
    await createLog({ store: to }).append('k', [{ type: 'First', data: {} }])
    expect(await to.log.head()).toBe(1)
  })

  test.each([
    ['an event', (to: Store) => createLog({ store: to }).append('k', [{ type: 'Mine', data: {} }])],
    ['a subscription', (to: Store) => createEngine({ store: to, subscriptions: [accounts] }).prepare()],
    ['an entry of the audit', (to: Store) => to.audit.record(deedOf('look'))],
    ['a breaker', (to: Store) => to.breakers.save({ name: 'smtp', state: { state: 'closed' }, record: '{}' }, 0)],
  ])('is not put where there is %s already', async (_, write) => {
    const { from: original } = await openOriginal()
    await using from = original
    await using to = await schemas.open(schemas.readySchema())
    await write(to)
    const before = await archiveOf(to)
    await expect(copyStore({ from, to })).rejects.toMatchObject({ code: 'STORE_NOT_EMPTY' })
    await expect(copyStore({ from, to, force: true })).rejects.toMatchObject({ code: 'STORE_NOT_EMPTY' })
    expect(await archiveOf(to)).toEqual(before)
  })

  test('is not made while an engine works on the original, unless it is forced to; a dead one does not count', async () => {
    const { file, ...original } = await openOriginal()
    await using from = original.from
    await using to = await schemas.open(schemas.readySchema())
    await using forced = await schemas.open(schemas.readySchema())
    const engine = await startEngineProcess(file)
    try {
      await expect(copyStore({ from, to })).rejects.toMatchObject({ code: 'STORE_IN_USE' })
      expect(await archiveOf(to)).toEqual([])
      expect(await copyStore({ from, to: forced, force: true })).toMatchObject({ counts: { event: 13 } })
    } finally {
      engine.kill('SIGKILL')
      await once(engine, 'exit')
    }
    expect(await copyStore({ from, to })).toMatchObject({ counts: { event: 13 } })
  })

  test('is not called good when somebody appended to the original meanwhile, unless it is forced to', async () => {
    const { from: original } = await openOriginal()
    await using from = original
    await using to = await schemas.open(schemas.readySchema())
    await using forced = await schemas.open(schemas.readySchema())
    const appending: Promise<unknown>[] = []
    const onProgress = () =>
      void appending.push(createLog({ store: from }).append('late', [{ type: 'Late', data: {} }]))
    await expect(copyStore({ from, to, onProgress })).rejects.toMatchObject({ code: 'STORE_IN_USE' })
    await copyStore({ from, to: forced, force: true, onProgress })
    expect(appending.length).toBeGreaterThan(1)
    await Promise.all(appending)
  })

  test('has nothing, when the original can not be read to its end', async () => {
    await using to = await schemas.open(schemas.readySchema())
    const { from: original } = await openOriginal()
    await using from = original
    const broken: Store = {
      ...from,
      snapshot: (read) =>
        from.snapshot((moment) =>
          read({
            ...moment,
            archive: async function* () {
              for await (const part of moment.archive()) {
                if (part.part === 'letters') throw new Error('The disk is gone.')
                yield part
              }
            },
          }),
        ),
    }
    await expect(copyStore({ from: broken, to })).rejects.toThrow(/^The disk is gone/)
    expect(await archiveOf(to)).toEqual([])
    await expect(copyStore({ from, to })).resolves.toMatchObject({ left: ['journal'] })
  })

  test('is handed over in parts that one statement can hold, even if every event has a megabyte', async () => {
    await using from = await createSqliteStore({ file: newFile() })
    await using to = await schemas.open(schemas.readySchema())
    const log = createLog({ store: from })
    for (let i = 0; i < 5; i++) {
      await log.append(
        `k${i}`,
        Array.from({ length: 90 }, () => ({ type: 'Small', data: {} }) as const),
      )
    }
    await copyStore({ from, to })
    for (const store of [from, to]) {
      const sizes = (await archiveOf(store)).map((part) => (part.part === 'events' ? part.events.length : 0))
      expect(Math.max(...sizes)).toBeLessThanOrEqual(100)
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(450)
    }
  })

  test('can be made from PostgreSQL as well, on which nobody works either', async () => {
    const { source, ...original } = await openOriginal()
    await using first = original.from
    const schema = schemas.readySchema()
    await using from = await schemas.open(schema)
    await using to = await schemas.open(schemas.readySchema())
    await copyStore({ from: first, to: from })

    const engine = engineOn(from, source)
    await operatorOf(from).resume('totals', 'closed')
    await engine.start()
    await engine.drain()
    await expect(copyStore({ from, to })).rejects.toMatchObject({ code: 'STORE_IN_USE' })
    await engine.stop()
    // As one that was killed leaves it, whose lease has not ended.
    await schemas.user.query(
      `UPDATE ${schema}.holdfast_partitions SET owner = 'ghost', presence = 1, lease_until = 'infinity'`,
    )
    expect(await copyStore({ from, to })).toMatchObject({ counts: { event: 13 } })
    expect(await contentOf(to, engineOn(to, source))).toEqual(await contentOf(from, engineOn(from, source)))
  })
})

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

async function archiveOf(store: Store): Promise<ArchivePart[]> {
  return store.snapshot(async (moment) => {
    const parts: ArchivePart[] = []
    for await (const part of moment.archive()) parts.push(part)
    return parts
  })
}

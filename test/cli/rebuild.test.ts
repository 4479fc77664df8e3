import { createEngine, createLog, defineEvents, defineProjection } from 'holdfast'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { createPlace, type Place } from './place.ts'

const events = defineEvents({ Credited: z.object({ amount: z.number() }) })

const live = defineProjection('balances', {
  events,
  initial: () => ({ balance: 0 }),
  on: { Credited: (row, { data }) => ({ balance: row.balance + data.amount }) },
})

const bank = `
import { defineEvents, defineProjection } from 'holdfast'
import { z } from 'zod'
export const bank = defineEvents({ Credited: z.object({ amount: z.number() }) })
export const balances = defineProjection('balances', {
  version: 2,
  events: bank,
  initial: () => ({ balance: 0, moves: 0 }),
  on: { Credited: (row, { data }) => ({ balance: row.balance + data.amount, moves: row.moves + 1 }) },
})
`

const config = `
import { defineConfig } from 'holdfast'
import { bank, balances } from './bank.ts'
export default defineConfig({ store: { sqlite: 'events.db' }, subscriptions: [balances], events: bank })
`

/** Version 1 is live and has three rows; the configuration has version 2. */
async function createBank(): Promise<Place> {
  const place = createPlace({ 'bank.ts': bank, 'holdfast.config.ts': config })
  await using store = await place.open()
  const log = createLog({ store, events })
  for (const key of ['ada', 'bob', 'cyd']) await log.append(key, [{ type: 'Credited', data: { amount: 5 } }])
  await using engine = createEngine({ store, subscriptions: [live] })
  await engine.start()
  await engine.drain()
  return place
}

const why = ['--as', 'ada', '--reason', 'moves are wanted']

it('leads from one version to the next and back, and says at each step what comes then', async () => {
  using place = await createBank()

  const before = await place.json(['projections', 'versions', 'balances', '--json'])
  expect(before).toMatchObject({ code: 0, declared: 2, versions: [{ version: 1, state: 'live', isDeclared: false }] })
  expect(await place.json(['verify', 'balances', '--json'])).toMatchObject({
    code: 1,
    error: { code: 'PROJECTION_VERSION' },
  })

  const built = await place.call(['projections', 'rebuild', 'balances', ...why])
  expect(built).toMatchObject({ code: 0, stdout: 'Version 2 of balances has caught up. 3 events so far.\n' })
  expect(built.stderr).toContain('holdfast projections diff balances')

  const diff = await place.json(['projections', 'diff', 'balances', '--limit', '1', '--json'])
  expect(diff).toMatchObject({ code: 3, same: 0, different: 3, isLevel: true })
  expect(JSON.stringify(diff)).not.toContain('"balance":5')
  const revealed = await place.json(['projections', 'diff', 'balances', '--reveal', ...why, '--json'])
  expect(revealed).toMatchObject({
    differences: [{ key: 'ada', live: { data: { balance: 5 } }, rebuilt: { data: { balance: 5, moves: 1 } } }, {}, {}],
  })

  const dry = await place.json(['projections', 'switch', 'balances', '--dry-run', '--json'])
  expect(dry).toMatchObject({ code: 0, dryRun: true, from: 1, to: 2 })
  expect(await place.json(['projections', 'versions', 'balances', '--json'])).toMatchObject({
    versions: [
      { version: 1, state: 'live' },
      { version: 2, state: 'building' },
    ],
  })
  const switched = await place.call(['projections', 'switch', 'balances', '--yes', ...why])
  expect(switched).toMatchObject({ code: 0, stdout: 'balances is live at version 2; version 1 is kept.\n' })
  expect(await place.json(['verify', 'balances', '--json'])).toMatchObject({ code: 0, verified: true })
  const row = await place.json(['projections', 'get', 'balances', 'ada', '--reveal', ...why, '--json'])
  expect(row).toMatchObject({ data: { balance: 5, moves: 1 } })

  const back = await place.json(['projections', 'switch', 'balances', '--to', '1', '--yes', ...why, '--json'])
  expect(back).toMatchObject({ code: 0, from: 2, to: 1 })
  await place.json(['projections', 'switch', 'balances', '--yes', ...why, '--json'])
  const dropped = await place.json(['projections', 'drop', 'balances', '1', '--yes', ...why, '--json'])
  expect(dropped).toMatchObject({ code: 0, version: 1 })
  const audit = await place.json<{ entries: { act: string; by: string }[] }>(['audit', 'list', '--json'])
  expect(audit.entries.map(({ act, by }) => `${by} ${act}`).filter((line) => line.includes('projection.'))).toEqual([
    'ada projection.rebuild',
    'ada projection.switch',
    'ada projection.switch',
    'ada projection.switch',
    'ada projection.drop',
  ])
})

it('refuses what it can not do, and changes nothing then', async () => {
  using place = await createBank()
  const cases: [code: number, error: string, ...args: string[]][] = [
    [2, 'USAGE', 'rebuild', 'balances'],
    [2, 'NOT_FOUND', 'rebuild', 'balance', ...why],
    [2, 'USAGE', 'rebuild', 'balances', '--load', '2', ...why],
    [2, 'USAGE', 'rebuild', 'balances', '--rate', '-1', ...why],
    [2, 'REBUILD_UNKNOWN', 'diff', 'balances'],
    [2, 'REBUILD_UNKNOWN', 'switch', 'balances', '--yes', ...why],
    [2, 'NOT_CONFIRMED', 'switch', 'balances', '--to', '1', ...why],
    [2, 'USAGE', 'switch', 'balances', '--to', 'x', '--yes', ...why],
    [1, 'REBUILD_LIVE', 'drop', 'balances', '1', '--yes', ...why],
    [2, 'USAGE', 'drop', 'balances', '; DROP TABLE balances', '--yes', ...why],
    [1, 'PROJECTION_VERSION', 'reset', 'balances', '--yes', ...why],
  ]
  for (const [code, error, ...args] of cases) {
    const told = await place.json<{ error?: { code: string } }>(['projections', ...args, '--json'])
    expect([args.join(' '), told.code, told.error?.code]).toEqual([args.join(' '), code, error])
  }
  expect(await place.json(['projections', 'versions', 'balances', '--json'])).toMatchObject({
    versions: [{ version: 1, state: 'live', position: 3 }],
  })
})

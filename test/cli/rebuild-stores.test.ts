import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { describeServers } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'
import { createPlace } from './place.ts'

vi.setConfig({ testTimeout: 90_000 })

describe('SQLite: a projection', () => {
  it('is rebuilt beside the live one, compared, switched, and dropped', async () => {
    expect(await story({})).toBe('told')
  })
})

describeServers('a projection', (server) => {
  const schemas = useSchemas(server)
  it('is rebuilt beside the live one, compared, switched, and dropped', async () => {
    expect(await story({ HOLDFAST_STORE: schemas.url, HOLDFAST_SCHEMA: schemas.newSchema() })).toBe('told')
  })
})

const why = ['--reason', 'a test']

/** Two configurations, because the code changes. */
async function story(env: Record<string, string>): Promise<'told'> {
  using place = createPlace()
  let config = 'holdfast.config.ts'
  const run = (...args: string[]) => place.call([...args, '--config', config], { env })
  const json = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { code, stdout } = await run(...args, '--json')
    return { ...JSON.parse(stdout), code }
  }
  await place.json(['migrate'], { env })
  for (const [key, amount] of [
    ['a', 1],
    ['b', 2],
    ['c', 3],
  ] as const)
    await place.json(['events', 'append', key, 'Credited', '--data', JSON.stringify({ amount }), ...why], { env })
  await run('start', '--drain')
  expect(await json('projections', 'rebuild', 'balances', ...why)).toMatchObject({
    code: 1,
    error: { code: 'REBUILD_LIVE' },
  })

  // Cents, from now on.
  const text = (name: string) => readFileSync(join(place.folder, name), 'utf8')
  const code = text('bank.ts')
    .replace('initial: () => ({ balance: 0 }),', 'version: 2,\n  initial: () => ({ balance: 0 }),')
    .replace('balance: row.balance + data.amount }', 'balance: row.balance + data.amount * 100 }')
  writeFileSync(join(place.folder, 'next-bank.ts'), code)
  config = 'next.config.ts'
  writeFileSync(join(place.folder, config), text('holdfast.config.ts').replace('./bank.ts', './next-bank.ts'))
  expect(await json('doctor')).toMatchObject({
    code: 3,
    findings: expect.arrayContaining([expect.objectContaining({ check: 'version' })]),
  })
  expect(await json('verify', 'balances')).toMatchObject({ code: 1, error: { code: 'PROJECTION_VERSION' } })
  expect(await json('verify')).toMatchObject({ code: 0, skipped: [{ subscription: 'balances' }] })
  expect(await json('projections', 'switch', 'balances', '--yes', ...why)).toMatchObject({
    code: 2,
    error: { code: 'REBUILD_UNKNOWN' },
  })
  const built = await run('projections', 'rebuild', 'balances', ...why)
  expect(built).toMatchObject({
    code: 0,
    stdout: 'Version 2 of balances has caught up. 3 events so far.\n',
  })
  const diff = await run('projections', 'diff', 'balances')
  expect(diff.code).toBe(3)
  expect(diff.stdout).toContain('0 the same, 3 different, 0 only live, 0 only rebuilt\n')
  expect(diff.stdout).toContain('  a\n    ~ balance: number, changed\n')
  expect(await json('projections', 'diff', 'balances', '--reveal', '--limit', '1', ...why)).toMatchObject({
    code: 3,
    isLevel: true,
    differences: [{ key: 'a', live: { data: { balance: 1 } }, rebuilt: { data: { balance: 100 } } }],
  })
  expect(await json('projections', 'switch', 'balances', ...why)).toMatchObject({
    code: 2,
    error: { code: 'NOT_CONFIRMED' },
  })
  expect(await json('projections', 'switch', 'balances', '--yes', ...why)).toMatchObject({ code: 0, from: 1, to: 2 })
  expect(await json('verify', 'balances')).toMatchObject({ code: 0, verified: true })
  expect(await json('projections', 'versions', 'balances')).toMatchObject({
    code: 0,
    versions: [
      { version: 2, state: 'live' },
      { version: 1, state: 'kept' },
    ],
  })
  expect(await json('status')).toMatchObject({
    subscriptions: [{ name: 'balances', state: 'idle' }, {}, { name: 'balances~1', state: 'beside' }],
  })
  for (const wrong of ['x', '', '-1', '0', '\u001b[2J'])
    expect(await json('projections', 'drop', 'balances', wrong, '--yes', ...why)).toMatchObject({
      code: 2,
    })
  expect(await json('projections', 'drop', 'balances', '1', ...why)).toMatchObject({
    code: 2,
    error: { code: 'NOT_CONFIRMED' },
  })
  expect(await json('projections', 'drop', 'balances', '1', '--yes', ...why)).toMatchObject({ code: 0, version: 1 })
  expect(await json('projections', 'versions', 'balances')).toMatchObject({ versions: [{ version: 2 }] })
  const { entries } = (await json('audit', 'list')) as { entries: { act: string; by: string }[] }
  const acts = entries.map(({ act }) => act)
  for (const act of ['projection.rebuild', 'projection.switch', 'projection.drop']) expect(acts).toContain(act)
  return 'told'
}

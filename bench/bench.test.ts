import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, inject, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
// The server of the run: a bench of its own would make one for each measurement, with the settings that count when the figures do.
const server = inject('postgres').find((offer) => 'url' in offer)
// Installing Emmett and running it takes longer than all other ways together, and tells nothing about Holdfast: every night does.
const emmett = process.env['HOLDFAST_EMMETT'] ?? 'off'
const env = { ...process.env, HOLDFAST_EMMETT: emmett, ...(server && { DATABASE_URL: server.url }) }
const bench = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['--conditions=@holdfast/source', 'bench/main.ts', ...args], { cwd: root, env })

async function measure(...args: string[]): Promise<Record<string, unknown>> {
  const { stdout } = await bench(...args, '--json')
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, unknown>
}

const missing = (result: object, fields: readonly string[]) =>
  fields.filter((field) => !(Number((result as Record<string, unknown>)[field]) > 0))

// No test depends on how fast it is. That all ways end with the same rows is tested: the run fails when they don't.
it('measures all ways through the same events of SQLite', { timeout: 120_000 }, async () => {
  const result = await measure('projection', '--store', 'sqlite', '--events', '1000', '--rounds', '1')
  const fields = ['eventsPerSecond', 'ratioToLimit', 'ratioToNaive', 'poisonRatio', 'rssMb', 'poisonHeldEvents']
  expect(missing(result, fields)).toEqual([])
})

it('measures all ways through the same events of PostgreSQL', { timeout: 300_000 }, async () => {
  const result = await measure('projection', '--store', 'postgres', '--events', '1000', '--rounds', '1')
  const rates = ['eventsPerSecond', 'limitPerSecond', 'limit10000PerSecond', 'naivePerSecond']
  const ratios = ['ratioToLimit', 'ratioToNaive', 'poisonRatio', 'heldRatio', 'rssMb']
  const peers = emmett === 'off' ? [] : ['emmettPerSecond', 'ratioToEmmett']
  expect(missing(result, [...rates, ...ratios, ...peers, 'poisonHeldEvents', 'heldEvents'])).toEqual([])
})

it('measures appends by 1, 4 and 16 writers', { timeout: 120_000 }, async () => {
  const { writers } = await measure('append', '--events', '200', '--rounds', '1')
  const figures = writers as Record<string, object>
  expect(Object.keys(figures)).toEqual(['1', '4', '16'])
  const fields = ['appendsPerSecond', 'naivePerSecond', 'ratioToNaive']
  expect(Object.values(figures).flatMap((one) => missing(one, fields))).toEqual([])
})

it('measures append to applied, from another process and from the same', { timeout: 120_000 }, async () => {
  const result = await measure('latency', '--events', '10', '--rounds', '1')
  expect(missing(result, ['p50Ms', 'p95Ms', 'ratioToBare'])).toEqual([])
  for (const side of ['fromCall', 'bare']) expect(missing(result[side] as object, ['p50Ms', 'p95Ms'])).toEqual([])
  expect(missing(result['sameProcess'] as object, ['p50Ms', 'p95Ms'])).toEqual([])
})

it('measures handlers', { timeout: 300_000 }, async () => {
  const result = await measure('handlers', '--store', 'postgres', '--events', '200', '--rounds', '1')
  const figures = ['ratioToIdeal', 'failingP99Ratio', 'heldCostRatio']
  expect(missing(result, [...figures, 'eventsPerSecond', 'idealPerSecond', 'failedAttempts', 'heldLanes'])).toEqual([])
})

it('measures a rebuild beside live events, and finds no difference', { timeout: 120_000 }, async () => {
  const result = await measure('rebuild', '--store', 'sqlite', '--events', '1000', '--keys', '100')
  expect(missing(result, ['eventsPerSecond', 'lagRatio', 'lagP50BeforeMs', 'switchMs', 'liveEvents'])).toEqual([])
  expect(result).toMatchObject({ differences: 0, held: 0 })
})

it('refuses what it does not know', async () => {
  await expect(bench('nothing')).rejects.toMatchObject({ code: 2 })
  await expect(bench('projection', '--store', 'oracle')).rejects.toMatchObject({ code: 2 })
})

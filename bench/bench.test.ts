import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const bench = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['--conditions=@holdfast/source', 'bench/main.ts', ...args], { cwd: root })

// How fast it is, is no matter for a test. That all ways end with the same rows is: the run fails when they don't.
it('measures all ways on the same events, and prints one object last', { timeout: 120_000 }, async () => {
  const { stdout } = await bench('projection', '--store', 'sqlite', '--events', '4000', '--rounds', '1', '--json')
  const result = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Record<string, number>
  const fields = ['eventsPerSecond', 'ratioToLimit', 'ratioToNaive', 'poisonRatio', 'rssMb', 'poisonHeldEvents']
  expect(fields.filter((field) => !((result[field] ?? 0) > 0))).toEqual([])
})

it('refuses what it does not know', async () => {
  await expect(bench('nothing')).rejects.toMatchObject({ code: 2 })
  await expect(bench('projection', '--store', 'oracle')).rejects.toMatchObject({ code: 2 })
})

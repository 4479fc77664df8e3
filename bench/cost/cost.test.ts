import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const main = fileURLToPath(new URL('main.ts', import.meta.url))
const cost = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['--conditions=@holdfast/source', main, ...args])

it('measures an idle process: one JSON object in the last line', { timeout: 120_000 }, async () => {
  const { stdout } = await cost('--only', '3x1', '--seconds', '1', '--settle', '1', '--json')
  const report = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '') as Record<string, unknown>
  const figure = expect.toSatisfy((value: unknown) => typeof value === 'number' && value > 0, 'a number above 0')
  const figures = { queriesPerSecond: figure, connections: figure, cpu: figure, rssMb: figure }
  expect(report).toMatchObject({ ...figures, subscriptions: 3, processes: 1 })
  expect(report['cells']).toMatchObject([figures])
  expect(report['footprints']).toMatchObject([{ subscriptions: 3, tables: figure, emptyMb: figure }])
})

it('refuses a cell that it does not understand', async () => {
  await expect(cost('--only', '3')).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('such as 3x1') })
})

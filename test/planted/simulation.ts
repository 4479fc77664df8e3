import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './command.ts'
import type { Verdict } from './suite.ts'

/** What the simulator says, and after how many seeds. */
export type Simulated = Verdict & { readonly seeds: number }

/** Undefined where the project has no simulator. */
export async function findBySimulation(folder: string, seeds: number): Promise<Simulated | undefined> {
  const { scripts } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  if (scripts.sim === undefined) return undefined
  const { code, stdout, stderr } = await run('npm', ['run', '-s', 'sim', '--', '--seeds', String(seeds), '--json'], {
    cwd: folder,
  })
  const last = stdout.trim().split('\n').at(-1) ?? ''
  try {
    const result = JSON.parse(last) as { readonly seeds: number; readonly violations: number }
    if (result.violations > 0) return { verdict: 'red', test: `${result.violations} violations`, seeds: result.seeds }
    return code === 0
      ? { verdict: 'green', seeds: result.seeds }
      : { verdict: 'broken', why: last.slice(0, 2_000), seeds: result.seeds }
  } catch {
    const why = code === null ? 'it did not come to an end' : `${last}\n${stderr}`.trim().slice(-2_000)
    return { verdict: 'broken', why, seeds: 0 }
  }
}

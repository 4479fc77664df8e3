import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from './command.ts'
import type { Verdict } from './suite.ts'

/** What the simulator says, and after how many seeds. */
export type Simulated = Verdict & { readonly seeds: number }

/** What of its last line we need. Its seeds are 1, 2, 3, …, and the first that failed is the first here. */
interface Report {
  readonly seeds: number
  readonly violations: number
  readonly failed?: readonly { readonly seed: number; readonly violations?: readonly string[] }[]
}

/** Most bugs are found by the first few seeds, and a bug can make each of them slow. */
const firstSeeds = 20

/** The simulator has a store of its own, which has of the others only what tells when a gap is settled. */
const isApart = /^src\/(?:sqlite|postgres)\/(?!horizon)/

/** Whether the code of a file is a part of what is simulated. */
export function isSimulated(file: string): boolean {
  return !isApart.test(file)
}

/** Undefined where the project has no simulator. */
export async function findBySimulation(folder: string, mostSeeds: number): Promise<Simulated | undefined> {
  const { scripts } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  if (scripts.sim === undefined) return undefined
  const simulated = await simulate(folder, Math.min(firstSeeds, mostSeeds))
  return simulated.verdict === 'green' && mostSeeds > firstSeeds ? simulate(folder, mostSeeds) : simulated
}

async function simulate(folder: string, seeds: number): Promise<Simulated> {
  const args = ['run', '-s', 'sim', '--', '--seeds', String(seeds), '--jobs', '1', '--bail', '--json']
  const { code, stdout, stderr } = await run('npm', args, { cwd: folder })
  const last = stdout.trim().split('\n').at(-1) ?? ''
  const report = reportOf(last)
  if (!report) {
    const why = code === null ? 'it did not come to an end' : `${last}\n${stderr}`.trim().slice(-2_000)
    return { verdict: 'broken', why, seeds }
  }
  // Few seeds can't have seen everything that the simulator wants to see, so it is not its exit code that counts.
  if (report.violations === 0) return { verdict: 'green', seeds: report.seeds }
  const [first] = report.failed ?? []
  const what = first?.violations?.[0] ?? `${report.violations} violations`
  return { verdict: 'red', test: what, seeds: first?.seed ?? report.seeds }
}

function reportOf(line: string): Report | undefined {
  try {
    return JSON.parse(line) as Report
  } catch {
    return undefined
  }
}

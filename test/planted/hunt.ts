import type { Bug } from './bug.ts'
import { plant } from './bug.ts'
import { type Copy, copyProject } from './copy.ts'
import { findBySimulation } from './simulation.ts'
import { runSuite } from './suite.ts'

export interface Hunting {
  readonly bugs: readonly Bug[]
  readonly by: 'suite' | 'sim' | 'both'
  /** As many as the simulator may take. */
  readonly seeds: number
  readonly servers: readonly { readonly name: string; readonly url: string }[]
  readonly tell: (line: string) => void
}

export type Finding = { readonly name: string; readonly tells: string; readonly seconds: number } & (
  | { readonly by: 'simulator'; readonly seeds: number }
  | { readonly by: 'suite'; readonly test: string }
  | { readonly by: null; readonly why: string }
)

export interface Hunted {
  /** The same without a bug: if that is not green, what was found proves nothing. */
  readonly control: { readonly isGreen: boolean; readonly seconds: number; readonly why?: string }
  readonly planted: number
  readonly found: number
  readonly missed: number
  readonly bugs: readonly Finding[]
}

/** As many as there are copies of the project. */
const atOnce = 2

/** Plants each bug alone, and looks who finds it: the simulator, or else the tests that are named with it. */
export async function hunt(hunting: Hunting): Promise<Hunted> {
  const { bugs, tell } = hunting
  await using first = await copyProject()
  await using second = await copyProject()
  const control = await inspect(first, hunting)
  tell(`control: ${control.isGreen ? 'green' : control.why} (${control.seconds} s)`)
  const waiting = [...bugs.entries()]
  const findings: Finding[] = []
  const work = async (copy: Copy) => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [i, bug] = next
      const finding = await find(bug, copy, hunting)
      findings[i] = finding
      tell(`${i + 1} of ${bugs.length} ${bug.name}: ${words(finding)} (${finding.seconds} s)`)
    }
  }
  if (control.isGreen) await Promise.all([first, second].slice(0, atOnce).map(work))
  const found = findings.filter(({ by }) => by !== null).length
  return { control, planted: bugs.length, found, missed: bugs.length - found, bugs: findings }
}

/** Whether the code is sound in the eyes of those who are to find the bugs. */
async function inspect(copy: Copy, { bugs, by, seeds, servers }: Hunting): Promise<Hunted['control']> {
  const begun = performance.now()
  const files = [...new Set(bugs.flatMap(({ suite }) => suite))].toSorted()
  const simulated = by === 'suite' ? undefined : await findBySimulation(copy.folder, seeds)
  const tested = by === 'sim' ? undefined : await runSuite(copy.folder, files, servers)
  const why = [simulated, tested].flatMap((one) => whyNot(one) ?? [])[0]
  return { isGreen: why === undefined, seconds: secondsSince(begun), ...(why !== undefined && { why }) }
}

async function find(bug: Bug, { folder }: Copy, { by, seeds, servers }: Hunting): Promise<Finding> {
  const { name, tells, suite } = bug
  const begun = performance.now()
  const about = () => ({ name, tells, seconds: secondsSince(begun) })
  const takeOut = await plant(bug, folder)
  try {
    const simulated = by === 'suite' ? undefined : await findBySimulation(folder, seeds)
    if (simulated?.verdict === 'red') return { ...about(), by: 'simulator', seeds: simulated.seeds }
    const tested = by === 'sim' ? undefined : await runSuite(folder, suite, servers)
    if (tested?.verdict === 'red') return { ...about(), by: 'suite', test: tested.test }
    const why = [simulated, tested].flatMap((one) => whyNot(one) ?? [])[0]
    return { ...about(), by: null, why: why ?? 'nobody noticed' }
  } finally {
    await takeOut()
  }
}

function whyNot(
  verdict: Awaited<ReturnType<typeof runSuite>> | Awaited<ReturnType<typeof findBySimulation>>,
): string | undefined {
  if (verdict === undefined || verdict.verdict === 'green') return undefined
  return verdict.verdict === 'red' ? verdict.test : verdict.why
}

function words(finding: Finding): string {
  if (finding.by === 'simulator') return `found by the simulator within ${finding.seeds} seeds`
  return finding.by === 'suite' ? `found by ${finding.test}` : `MISSED, ${finding.why}`
}

function secondsSince(begun: number): number {
  return Math.round((performance.now() - begun) / 100) / 10
}

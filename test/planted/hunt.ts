import { type Bug, plant } from './bug.ts'
import { type Copy, copyProject } from './copy.ts'
import { findBySimulation, isSimulated } from './simulation.ts'
import { runSuite, type Verdict } from './suite.ts'

export interface Hunting {
  readonly bugs: readonly Bug[]
  readonly by: 'suite' | 'sim' | 'both'
  /** As many as the simulator may take. */
  readonly seeds: number
  readonly servers: readonly { readonly name: string; readonly url: string }[]
  readonly tell: (line: string) => void
}

export type Finding = { readonly name: string; readonly tells: string; readonly seconds: number } & (
  | { readonly by: 'simulator'; readonly seeds: number; readonly violation: string }
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

/** Plants each bug alone, two at a time, and looks who finds it: the simulator, or else the tests that are named with it. */
export async function hunt(hunting: Hunting): Promise<Hunted> {
  const { bugs, tell } = hunting
  using first = await copyProject()
  using second = await copyProject()
  const copies = [first, second]
  const control = await inspect(copies, hunting)
  tell(`control: ${control.why ?? 'green'} (${control.seconds} s)`)
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
  if (control.isGreen) await Promise.all(copies.map(work))
  const found = findings.filter(({ by }) => by !== null).length
  return { control, planted: bugs.length, found, missed: bugs.length - found, bugs: findings }
}

/** Whether the code is sound in the eyes of those who are to find the bugs. */
async function inspect(copies: readonly Copy[], { bugs, by, seeds, servers }: Hunting): Promise<Hunted['control']> {
  const begun = performance.now()
  const files = [...new Set(bugs.flatMap(({ suite }) => suite))].toSorted()
  const verdicts = await Promise.all(
    copies.map(async ({ folder }, turn): Promise<readonly (Verdict | undefined)[]> => {
      const own = files.filter((_, i) => i % copies.length === turn)
      const tested = by === 'sim' || own.length === 0 ? undefined : await runSuite(folder, own, servers)
      const simulated = by === 'suite' || turn > 0 ? undefined : await findBySimulation(folder, seeds)
      return [tested, simulated]
    }),
  )
  const why = verdicts.flat().flatMap((verdict) => whyNot(verdict) ?? [])[0]
  return { isGreen: why === undefined, seconds: secondsSince(begun), ...(why !== undefined && { why }) }
}

async function find(bug: Bug, { folder }: Copy, { by, seeds, servers }: Hunting): Promise<Finding> {
  const { name, tells, suite } = bug
  const begun = performance.now()
  const about = () => ({ name, tells, seconds: secondsSince(begun) })
  const takeOut = await plant(bug, folder)
  try {
    const isAttacked = by !== 'suite' && isSimulated(bug.file)
    const simulated = isAttacked ? await findBySimulation(folder, seeds) : undefined
    if (simulated?.verdict === 'red')
      return { ...about(), by: 'simulator', seeds: simulated.seeds, violation: simulated.test }
    const tested = by === 'sim' ? undefined : await runSuite(folder, suite, servers)
    if (tested?.verdict === 'red') return { ...about(), by: 'suite', test: tested.test }
    return { ...about(), by: null, why: whyNot(tested) ?? whyNot(simulated) ?? 'nobody noticed' }
  } finally {
    await takeOut()
  }
}

function whyNot(verdict: Verdict | undefined): string | undefined {
  if (verdict === undefined || verdict.verdict === 'green') return undefined
  return verdict.verdict === 'red' ? verdict.test : verdict.why
}

function words(finding: Finding): string {
  if (finding.by === 'simulator') return `found by the simulator after ${finding.seeds} seeds: ${finding.violation}`
  return finding.by === 'suite' ? `found by ${finding.test}` : `MISSED, ${finding.why}`
}

function secondsSince(begun: number): number {
  return Math.round((performance.now() - begun) / 100) / 10
}

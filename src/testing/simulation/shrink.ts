import { faultsOf, type Plan, without } from './plan.ts'

/** Plans that are simpler in one respect, the most promising first. */
export function simpler(plan: Plan): Plan[] {
  const { appends, processes, pageEvents, faultsMs, conditions } = plan
  const less = [0.25, 0.5, 0.75, 0.9].map((part) => Math.floor(appends * part)).filter((n) => n >= 1 && n < appends)
  return [
    ...faultsOf(plan).map((fault) => without(plan, fault)),
    ...[...new Set(less)].map((n) => ({ ...plan, appends: n })),
    ...(processes > 1 ? [{ ...plan, processes: processes - 1 }] : []),
    ...(pageEvents < 100 ? [{ ...plan, pageEvents: 100 }] : []),
    ...(faultsMs > 2_000 ? [{ ...plan, faultsMs: Math.floor(faultsMs / 2) }] : []),
    ...(conditions.latencyMs > 1 ? [{ ...plan, conditions: { ...conditions, latencyMs: 1 } }] : []),
  ]
}

/** The simplest plan that still fails, within a limited number of runs. */
export async function shrink<P>(
  plan: P,
  simplerOf: (plan: P) => readonly P[],
  fails: (plan: P) => Promise<boolean>,
  mostRuns = 200,
): Promise<P> {
  let best = plan
  for (let runs = 0; ; ) {
    let isBetter = false
    for (const candidate of simplerOf(best)) {
      if (++runs > mostRuns) return best
      if (!(await fails(candidate))) continue
      best = candidate
      isBetter = true
      break
    }
    if (!isBetter) return best
  }
}

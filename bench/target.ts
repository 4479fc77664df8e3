import { availableParallelism, cpus } from 'node:os'

export type Target = { readonly atLeast: number } | { readonly atMost: number }

export type Targets = Readonly<Record<string, Target>>

/** Whether every target is met. One that was not measured isn't. */
export function meets(targets: Targets, measured: Readonly<Record<string, number | undefined>>): boolean {
  return Object.entries(targets).every(([name, target]) => isMet(target, measured[name]))
}

/** One line of the text report. */
export function verdict(title: string, value: number | undefined, target: Target | undefined): string {
  const line = `  ${title.padEnd(16)}${(value === undefined ? '-' : String(value)).padStart(9)}`
  if (!target) return line
  const asked = 'atLeast' in target ? `at least ${target.atLeast}` : `at most ${target.atMost}`
  return `${line}   ${isMet(target, value) ? 'met   ' : 'MISSED'} (${asked})`
}

function isMet(target: Target, value = Number.NaN): boolean {
  return 'atLeast' in target ? value >= target.atLeast : value <= target.atMost
}

export function machine() {
  return {
    node: process.versions.node,
    cpus: availableParallelism(),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
  }
}

import { HoldfastError, type Log } from 'holdfast'
import type { bank } from './bank.ts'
import type { Step, Workload } from './workload.ts'

/** The results of all appends. */
export interface DoorFacts {
  readonly appended: number
  /** Events that were sent again and that the log already had. */
  readonly absorbed: number
  /** How many appends were refused, by the code of the error. */
  readonly refused: Readonly<Record<string, number>>
  /** Malformed appends that were accepted, or rejected for a wrong reason. */
  readonly mistakes: readonly string[]
  readonly seconds: number
}

/** Runs all tellers concurrently, each one step at a time. Simultaneous appends share a transaction. */
export async function serveCustomers(
  log: Log<typeof bank>,
  { tellers }: Workload,
  onAppended: (events: number) => void,
): Promise<DoorFacts> {
  const begun = performance.now()
  let appended = 0
  let absorbed = 0
  const refused: Record<string, number> = {}
  const mistakes: string[] = []

  await Promise.all(tellers.map(serve))
  return { appended, absorbed, refused, mistakes, seconds: (performance.now() - begun) / 1_000 }

  async function serve(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      if (step.kind === 'malformed') {
        await refuse(step)
        continue
      }
      const { repeated } = await log.append(step.key, step.drafts)
      if (repeated !== (step.kind === 'repeat')) mistakes.push(`${step.key}: ${step.kind} gave repeated: ${repeated}`)
      if (repeated) absorbed += step.drafts.length
      else onAppended((appended += step.drafts.length))
    }
  }

  async function refuse({ what, code, key, drafts, options }: Step & { kind: 'malformed' }): Promise<void> {
    try {
      // The compiler would also reject most of these.
      await log.append(key, drafts as never, options)
      mistakes.push(`${what} was accepted`)
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error
      if (error.code === code) refused[code] = (refused[code] ?? 0) + 1
      else mistakes.push(`${what} was rejected with ${error.code} instead of ${code}`)
    }
  }
}

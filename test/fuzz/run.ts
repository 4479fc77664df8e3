import { createChance, seedOf } from './chance.ts'
import { type Door, type Ground, type OpenDoor, type Outcome, shown } from './door.ts'

export interface FoundProblem {
  readonly door: string
  /** With the seed of the run it makes the case again. */
  readonly case: number
  readonly problem: string
}

export interface DoorReport {
  readonly cases: number
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>
  readonly perSecond: number
}

export interface FuzzOptions {
  readonly seed: number
  readonly ground: Ground
  readonly doors: readonly Door[]
  /** Whether to go on at this door, after so many cases. */
  readonly goesOn: (door: Door, cases: number) => boolean
  /** Where to begin, to make one case again. */
  readonly from?: number
  readonly onFound?: (found: FoundProblem) => void
}

export interface FuzzResult {
  readonly doors: Readonly<Record<string, DoorReport>>
  readonly findings: readonly FoundProblem[]
}

const mostFindings = 20

/** Gives every door what nobody should give it. */
export async function runFuzz({ seed, ground, doors, goesOn, from = 0, onFound }: FuzzOptions): Promise<FuzzResult> {
  const findings: FoundProblem[] = []
  const reports: Record<string, DoorReport> = {}
  const rejections: unknown[] = []
  const hear = (reason: unknown) => void rejections.push(reason)
  const pure = prototypes()
  process.on('unhandledRejection', hear)
  try {
    for (const door of doors) reports[door.name] = await runDoor(door)
  } finally {
    process.off('unhandledRejection', hear)
  }
  return { doors: reports, findings }

  async function runDoor(door: Door): Promise<DoorReport> {
    const outcomes: Partial<Record<Outcome, number>> = {}
    const begun = performance.now()
    let cases = from
    const found = (problem: string) => {
      const finding = { door: door.name, case: cases, problem }
      findings.push(finding)
      onFound?.(finding)
    }
    const attempt = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
      try {
        return await work()
      } catch (error) {
        found(shown(error))
        return undefined
      }
    }
    while (goesOn(door, cases - from) && findings.length < mostFindings) {
      const open = await attempt(() => door.open(ground))
      if (!open) break
      // After a finding the rest would be told about a door that is broken already.
      if (await give(open)) await attempt(async () => open.check?.())
      await attempt(async () => open[Symbol.asyncDispose]())
    }
    const missing = door.outcomes.filter((outcome) => outcomes[outcome] === undefined)
    if (missing.length > 0 && cases - from >= fewest) found(`nothing was ever ${missing.join(' or ')}`)
    const seconds = (performance.now() - begun) / 1_000
    return { cases: cases - from, outcomes, perSecond: Math.round((cases - from) / seconds) }

    async function give(open: OpenDoor): Promise<boolean> {
      for (let i = 0; i < door.cases && goesOn(door, cases - from); i++, cases++) {
        const outcome = await attempt(() => open.give(createChance(seedOf(seed, door.name, cases))))
        if (outcome === undefined) {
          cases++
          return false
        }
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
        if (prototypes() !== pure) found('a prototype was changed')
        // A rejection is told of when the microtasks are through.
        await new Promise((done) => setImmediate(done))
        for (const reason of rejections.splice(0)) found(`a rejection that nobody heard: ${shown(reason)}`)
      }
      return true
    }
  }
}

const fewest = 50

function prototypes(): string {
  return [Object.prototype, Array.prototype, Error.prototype, Function.prototype]
    .map((prototype) => Reflect.ownKeys(prototype).map(String).join(' '))
    .join('|')
}

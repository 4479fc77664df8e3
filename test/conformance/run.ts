import { everythingIn, textOf } from './compare.ts'
import { Knowledge, type Step } from './knowledge.ts'
import * as log from './log-steps.ts'
import * as owner from './owner-steps.ts'
import * as people from './people-steps.ts'
import { memorySide, postgresSide, type Side } from './sides.ts'

type Make = (knowledge: Knowledge, side: Side) => Step | undefined | Promise<Step | undefined>

/** How often each is drawn. */
const kinds: readonly (readonly [Make, number])[] = [
  [log.append, 12],
  [log.begin, 3],
  [log.appendWithin, 5],
  [log.end, 4],
  [log.collide, 2],
  [log.readAll, 5],
  [log.readKey, 1],
  [log.ends, 3],
  [owner.register, 4],
  [owner.attend, 4],
  [owner.leave, 1],
  [owner.claim, 8],
  [owner.keep, 3],
  [owner.elapse, 2],
  [owner.load, 2],
  [owner.pause, 2],
  [owner.reset, 1],
  [owner.acquit, 1],
  [owner.commit, 24],
  [owner.perform, 5],
  [people.letters, 4],
  [people.heldLanes, 4],
  [people.summaries, 3],
  [people.revise, 3],
  [people.purge, 1],
  [people.ask, 4],
  [people.redrives, 4],
  [people.rebuild, 4],
  [people.rows, 3],
  [people.inbox, 2],
  [people.breakers, 2],
  [people.audit, 1],
  [people.moment, 2],
]
const drawn = kinds.flatMap(([make, times]) => Array.from({ length: times }, () => make))

export interface Sequence {
  readonly calls: number
  /** By what they were about, how many of them did something worth comparing. */
  readonly outcomes: ReadonlyMap<string, number>
  /** The first thing that was not the same, and what came before it. */
  readonly difference: string | undefined
}

/** One sequence of calls on a store in memory and on PostgreSQL, and everything that is in them in the end. */
export async function runSequence(url: string, schema: string, seed: number, steps: number): Promise<Sequence> {
  await using postgres = await postgresSide(url, schema)
  await using memory = await memorySide()
  const sides = [memory, postgres]
  const knowledge = new Knowledge(seed)
  const told: string[] = []
  const outcomes = new Map<string, number>()
  const differs = (what: string) => `${what}\nafter:\n${told.slice(-40).join('\n')}`

  for (let i = 0; i < steps; i++) {
    const step = i === 0 ? owner.registerAll(knowledge) : await knowledge.pick(drawn)(knowledge, memory)
    if (!step) continue
    const [ours, theirs] = await both(step, sides)
    told.push(`${i} ${step.name} → ${ours.text.slice(0, 200)}`)
    const kind = `${step.name.split(' ')[0]} ${ours.outcome}`
    outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1)
    if (ours.text !== theirs.text) {
      const difference = differs(`memory:     ${ours.text}\nPostgreSQL: ${theirs.text}`)
      return { calls: i, outcomes, difference }
    }
    if (!(ours.value instanceof Error)) step.learn?.(ours.value as never)
  }
  for (const pair of knowledge.open) for (const open of pair.of.values()) await open.end('rollback')
  const [ours = [], theirs = []] = await Promise.all(sides.map(({ clients }) => everythingIn(clients[1])))
  const at = Array.from({ length: Math.max(ours.length, theirs.length) }, (_, i) => i).find(
    (i) => ours[i] !== theirs[i],
  )
  const difference =
    at === undefined ? undefined : differs(`in the end\nmemory:     ${ours[at]}\nPostgreSQL: ${theirs[at]}`)
  return { calls: steps, outcomes, difference }
}

interface Answer {
  readonly value: unknown
  readonly text: string
  readonly outcome: string
}

async function both(step: Step, sides: readonly Side[]): Promise<[Answer, Answer]> {
  const answers: Answer[] = []
  for (const side of sides) {
    const value = await step.run(side).catch((error: unknown) => error)
    answers.push({ value, text: textOf(value), outcome: outcomeOf(value) })
  }
  return answers as [Answer, Answer]
}

function outcomeOf(value: unknown): string {
  if (value instanceof Error) return String('code' in value ? value.code : value.name)
  if (Array.isArray(value)) return value.map(outcomeOf).find((outcome) => outcome !== '') ?? ''
  return typeof value === 'object' && value !== null && 'outcome' in value ? String(value.outcome) : ''
}

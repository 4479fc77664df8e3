import type { FailureClass } from './failure.ts'
import { field } from './peek.ts'
import { byOurs } from './recognise.ts'
import { ask, type Rule } from './rules.ts'
import { said } from './said.ts'

/** What an error is, by which rule, and by what in it: a code, a status, a class. */
export interface Classified {
  readonly class: FailureClass
  readonly rule: string
  /** Such as `ECONNREFUSED`, `HTTP 503`, `SQLSTATE 40001`; null where nothing but the rule tells. */
  readonly evidence: string | null
  /** How long the other side asked us to wait, within limits. */
  readonly retryAfterMs?: number
  /** Who is down, for a failure of the class `dependency`. */
  readonly dependency?: string
  /** Said outright by the handler: the event is to be recorded and passed over. */
  readonly skip?: string
}

export type { Rule } from './rules.ts'

const mostCauses = 8
const mostMembers = 16
// Each member of an aggregate may be an aggregate with causes again; eight levels of sixteen would be billions.
const mostErrors = 256

const unrecognised: Classified = { class: 'unknown', rule: 'unrecognised', evidence: null }

/**
 * Tells what was thrown, and never throws itself, whatever it is. By codes and classes, never by the text of a message: that is
 * written for people, changes with every release, and says "blocked" where somebody looks for "lock".
 *
 * First what the handler said outright, then the user's rules, then ours; each of them about the error as it was thrown, and then
 * about its causes, one after the other.
 */
export function classify(thrown: unknown, rules: readonly Rule[], now: number): Classified {
  return judge(thrown, { rules, now, seen: new Set() }, 0) ?? unrecognised
}

interface Hearing {
  readonly rules: readonly Rule[]
  readonly now: number
  readonly seen: Set<unknown>
}

function judge(thrown: unknown, hearing: Hearing, depth: number): Classified | undefined {
  const { rules, now } = hearing
  const chain = chainOf(thrown, hearing, depth)
  return (
    first(chain, said) ??
    first(chain, (error) => ask(rules, error, now)) ??
    first(chain, (error, link) => byOurs(error, now) ?? worst(membersOf(error), hearing, depth + link + 1))
  )
}

function first(
  chain: readonly unknown[],
  tell: (error: unknown, link: number) => Classified | undefined,
): Classified | undefined {
  for (const [link, error] of chain.entries()) {
    const told = tell(error, link)
    if (told) return told
  }
  return undefined
}

/** The error and its causes, as far as nobody has looked at them. */
function chainOf(thrown: unknown, { seen }: Hearing, depth: number): unknown[] {
  const chain: unknown[] = []
  let error = thrown
  while (!seen.has(error) && seen.size < mostErrors && depth + chain.length <= mostCauses) {
    seen.add(error)
    chain.push(error)
    error = field(error, 'cause')
    if (error === undefined || error === null) break
  }
  return chain
}

/** The errors of an AggregateError, and of what looks like one. */
function membersOf(error: unknown): unknown[] {
  const errors = field(error, 'errors')
  try {
    return Array.isArray(errors) ? errors.slice(0, mostMembers) : []
  } catch {
    return []
  }
}

/**
 * Of several errors at once, the one that least speaks for trying again: one of them failing every time is enough for the whole to
 * fail every time. Those that nobody recognises have no say. To pass an event over, all have to say so.
 */
const byGravity = ['permanent', 'infrastructure', 'dependency', 'unknown', 'transient'] as const

function worst(members: readonly unknown[], hearing: Hearing, depth: number): Classified | undefined {
  const told = members.map((member) => judge(member, hearing, depth)).filter((one) => one !== undefined)
  const serious = told.filter(({ skip }) => skip === undefined)
  const gravest = byGravity.find((name) => serious.some((one) => one.class === name))
  const alike = serious.filter((one) => one.class === gravest)
  // The one that wants the longest wait speaks for those that are alike.
  return alike.toSorted((a, b) => (b.retryAfterMs ?? 0) - (a.retryAfterMs ?? 0))[0] ?? told[0]
}

import type { FailureClass } from './failure.ts'
import { field, membersOf } from './peek.ts'
import { byOurs } from './recognise.ts'
import { ask, type Rule } from './rules.ts'
import { said } from './said.ts'

/** The class of an error, the rule that matched, and the evidence: a code, a status, a class. */
export interface Classified {
  readonly class: FailureClass
  readonly rule: string
  /** For example `ECONNREFUSED`, `HTTP 503`, `SQLSTATE 40001`; null if only the rule is known. */
  readonly evidence: string | null
  /** The delay that the service asked for, within limits. */
  readonly retryAfterMs?: number
  /** The unavailable service, for the class `dependency`. */
  readonly dependency?: string
  /** The handler threw `failure.skip`: the event is recorded as discarded. */
  readonly skip?: string
}

export type { Rule } from './rules.ts'

const mostCauses = 8
// Each error of an aggregate may be an aggregate with causes; eight levels of sixteen would be billions.
const mostErrors = 256

const unrecognised: Classified = { class: 'unknown', rule: 'unrecognised', evidence: null }

/**
 * Classifies a thrown value, and never throws. By codes and classes, never by message text: messages are written for humans,
 * change with every release, and contain "blocked" when a rule searches for "lock".
 *
 * The order is: what the handler set, the user's rules, the built-in rules; each for the thrown error first, and then for its
 * causes.
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

/** The error and its causes that were not examined yet. */
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

/**
 * Of several errors, the class that is least likely to succeed on a retry: one permanent error is enough for the whole to fail
 * every time. Unrecognised errors are ignored. An event is skipped only if all of them are a skip.
 */
const byGravity = ['permanent', 'infrastructure', 'dependency', 'unknown', 'transient'] as const

function worst(members: readonly unknown[], hearing: Hearing, depth: number): Classified | undefined {
  const told = members.map((member) => judge(member, hearing, depth)).filter((one) => one !== undefined)
  const serious = told.filter(({ skip }) => skip === undefined)
  const gravest = byGravity.find((name) => serious.some((one) => one.class === name))
  const alike = serious.filter((one) => one.class === gravest)
  // The longest delay of all errors with that class.
  return alike.toSorted((a, b) => (b.retryAfterMs ?? 0) - (a.retryAfterMs ?? 0))[0] ?? told[0]
}

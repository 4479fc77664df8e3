import type { Classified } from './classify.ts'
import { type FailureClass, failureClasses } from './failure.ts'
import { askedToWait, longestWaitMs } from './http.ts'
import { cut, disarm, field, text } from './peek.ts'

/** Returns undefined if the rule does not apply. A rule that throws does not apply either. */
export type Rule = (error: unknown) => Classified | FailureClass | undefined

/** The first valid answer of the user's rules. */
export function ask(rules: readonly Rule[], error: unknown, now: number): Classified | undefined {
  for (const rule of rules) {
    const answer = answerOf(rule, error)
    const told = isFailureClass(answer) ? { class: answer } : sound(answer)
    if (!told) continue
    const retryAfterMs = told.class === 'permanent' ? undefined : askedToWait(error, now)
    return {
      rule: cut(text(field(rule, 'name')) || 'own rule', 100),
      evidence: null,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...told,
    }
  }
  return undefined
}

function answerOf(rule: Rule, error: unknown): unknown {
  try {
    const answer: unknown = rule(error)
    disarm(answer)
    return answer
  } catch {
    return undefined
  }
}

/** The valid part of a foreign answer; undefined if it has no class. */
export function sound(answer: unknown): ({ class: FailureClass } & Partial<Classified>) | undefined {
  const failureClass = field(answer, 'class')
  if (!isFailureClass(failureClass)) return undefined
  const rule = text(field(answer, 'rule'))
  const evidence = text(field(answer, 'evidence'))
  const retryAfterMs = field(answer, 'retryAfterMs')
  const dependency = text(field(answer, 'dependency'))
  const skip = text(field(answer, 'skip'))
  return {
    class: failureClass,
    ...(rule && { rule: cut(rule, 100) }),
    ...(evidence && { evidence: cut(evidence, 100) }),
    ...(typeof retryAfterMs === 'number' &&
      retryAfterMs >= 0 && { retryAfterMs: Math.ceil(Math.min(retryAfterMs, longestWaitMs)) }),
    ...(dependency && { dependency: cut(dependency, 200) }),
    ...(skip && { skip: cut(skip, 1_000) }),
  }
}

function isFailureClass(value: unknown): value is FailureClass {
  return (failureClasses as readonly unknown[]).includes(value)
}

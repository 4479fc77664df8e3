import { AssertionError } from 'node:assert'
import { inspect } from 'node:util'
import { originOf } from '../../dead-letter/stack.ts'
import { diffJson } from '../../event/diff.ts'

export interface Evidence {
  readonly actual?: unknown
  readonly expected?: unknown
  /** What was thrown, if that is why. */
  readonly cause?: unknown
}

/** What a test says, remembered with the line that said it: by the time it turns out to be false, the stack has nothing of the test in it. */
export class Claim {
  readonly #operator: string
  readonly #frames: string

  constructor(operator: string) {
    this.#operator = operator
    const frames = (new Error().stack ?? '').split('\n').slice(1)
    const first = frames.findIndex((frame) => originOf(frame) !== 'holdfast')
    this.#frames = frames.slice(Math.max(first, 0)).join('\n')
  }

  /** Throws what every test runner knows. */
  fail(lines: readonly string[], { actual, expected, cause }: Evidence = {}): never {
    const message = lines.join('\n')
    const error = new AssertionError({ message, actual, expected, operator: this.#operator })
    error.stack = `AssertionError [ERR_ASSERTION]: ${message}\n${this.#frames}`
    if (cause !== undefined) error.cause = cause
    throw error
  }
}

/** On one line where it fits. */
export function shown(value: unknown): string {
  return inspect(value, { depth: 10, breakLength: 110, maxArrayLength: 20, maxStringLength: 200 })
}

/** Where two values are different at first, in words; undefined if nothing can be told apart. */
export function firstDifference(expected: unknown, actual: unknown): string | undefined {
  const [first] = diffJson(expected, actual)
  if (!first) return undefined
  const place = first.path === '' ? 'it' : first.path
  switch (first.change) {
    case 'added':
      return `${place} is ${shown(first.after)}, and should not be there`
    case 'removed':
      return `${place} is not there, and should be ${shown(first.before)}`
    case 'changed':
      return `${place} is ${shown(first.after)}, and should be ${shown(first.before)}`
    default:
      return first satisfies never
  }
}

import { AssertionError } from 'node:assert'
import { inspect } from 'node:util'
import { originOf } from '../../dead-letter/stack.ts'
import { diffJson } from '../../event/diff.ts'

export interface Evidence {
  readonly actual?: unknown
  readonly expected?: unknown
  /** The thrown error, if there is one. */
  readonly cause?: unknown
}

/** An expectation of a test with its stack: when it fails later, the current stack does not contain the test. */
export class Claim {
  readonly #operator: string
  readonly #frames: string

  constructor(operator: string) {
    this.#operator = operator
    const frames = (new Error().stack ?? '').split('\n').slice(1)
    const first = frames.findIndex((frame) => originOf(frame) !== 'holdfast')
    this.#frames = frames.slice(Math.max(first, 0)).join('\n')
  }

  /** Throws an AssertionError, which every test runner supports. */
  fail(lines: readonly string[], { actual, expected, cause }: Evidence = {}): never {
    const message = lines.join('\n')
    const error = new AssertionError({ message, actual, expected, operator: this.#operator })
    error.stack = `AssertionError [ERR_ASSERTION]: ${message}\n${this.#frames}`
    if (cause !== undefined) error.cause = cause
    throw error
  }
}

/** On one line if it fits. */
export function shown(value: unknown): string {
  return inspect(value, { depth: 10, breakLength: 110, maxArrayLength: 20, maxStringLength: 200 })
}

/** The first difference between two values in words; undefined if none is found. */
export function firstDifference(expected: unknown, actual: unknown): string | undefined {
  const [first] = diffJson(expected, actual)
  if (!first) return undefined
  const place = first.path === '' ? 'it' : first.path
  switch (first.change) {
    case 'added':
      return `${place} is ${shown(first.after)}, expected it to be absent`
    case 'removed':
      return `${place} is missing, expected ${shown(first.before)}`
    case 'changed':
      return `${place} is ${shown(first.after)}, expected ${shown(first.before)}`
    default:
      return first satisfies never
  }
}

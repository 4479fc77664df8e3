// What tests import as `vitest` while mutants are tried. Everything that compares is vitest's own; only how tests are collected is not:
// they are kept as functions, so that one process can run any of them again for the next mutant without loading anything anew.
export { expect, expectTypeOf, vi } from 'vitest'

type Work = (...args: never[]) => unknown

export interface Test {
  readonly id: string
  readonly file: string
  readonly run: () => Promise<void>
}

export const tests: Test[] = []
const path: string[] = []
let finishers: (() => unknown)[] = []

/** Whoever loads a file says so: its tests have its name. */
export function collect(file: string): void {
  path.splice(0, path.length, file)
}

export function onTestFinished(finish: () => unknown): void {
  finishers.push(finish)
}

export const describe = Object.assign(
  (name: string, ...rest: unknown[]) => {
    path.push(name)
    workOf(rest)()
    path.pop()
  },
  {
    for:
      (cases: readonly unknown[]) =>
      (name: string, ...rest: unknown[]) => {
        for (const [i, one] of cases.entries()) describe(`${name} #${i}`, () => workOf(rest)(one as never))
      },
  },
)

export const it = Object.assign(
  (name: string, ...rest: unknown[]) => {
    const work = workOf(rest)
    add(name, (context) => work(context as never))
  },
  {
    for:
      (cases: readonly unknown[]) =>
      (name: string, ...rest: unknown[]) => {
        const work = workOf(rest)
        for (const [i, one] of cases.entries()) add(`${name} #${i}`, (context) => work(one as never, context as never))
      },
  },
)

export const test = it

function add(name: string, work: (context: { readonly onTestFinished: typeof onTestFinished }) => unknown): void {
  const id = [...path, name].join(' > ')
  // Also what two tests of one name are told apart by.
  const same = tests.filter((known) => known.id === id || known.id.startsWith(`${id} (`)).length
  tests.push({
    id: same === 0 ? id : `${id} (${same + 1})`,
    file: path[0] ?? '',
    run: async () => {
      finishers = []
      try {
        await work({ onTestFinished })
      } finally {
        for (const finish of finishers.toReversed()) await finish()
      }
    },
  })
}

/** Options may stand before the function, a timeout behind it; neither matters here. */
function workOf(rest: readonly unknown[]): Work {
  return rest.find((one) => typeof one === 'function') as Work
}

import type { DeadLetter } from '../../dead-letter/letter.ts'
import { diffJson } from '../../event/diff.ts'
import type { EventCatalog } from '../../event/catalog.ts'
import type { Projection } from '../../projection/projection.ts'
import type { Duration } from '../../runtime/duration.ts'
import { Claim, firstDifference, shown } from './claim.ts'
import type { TestEvent } from './events.ts'
import { type ErrorTraits, type ExpectedError, isExpectedError, named } from './expected-error.ts'
import { heldLetters, rowsOf } from './look.ts'
import { explain, OutsideWatch } from './outside.ts'
import { checkExpected, notAwaitable } from './not-awaitable.ts'
import { afterStep, playScenario, type Scene, type Step, whenStep } from './scenario.ts'
import { watchedProjection } from './watched.ts'

/** Rows by key. */
export type ExpectedRows<Row> = Readonly<Record<string, Row>>

/** By lane: the error of its first held event. */
export type ExpectedHeld = Readonly<Record<string, ExpectedError>>

interface Result {
  readonly rows: Record<string, unknown>
  readonly held: readonly DeadLetter[]
}

export class GivenProjection<Row, C extends EventCatalog> {
  readonly #projection: Projection
  readonly #past: readonly TestEvent[]
  readonly #steps: readonly Step[]

  constructor(projection: Projection, past: readonly TestEvent[], steps: readonly Step[] = []) {
    this.#projection = projection
    this.#past = past
    this.#steps = steps
  }

  when(events: readonly TestEvent<C>[]): GivenProjection<Row, C> {
    return this.#and(whenStep(events))
  }

  /** Advances time. */
  after(duration: Duration): GivenProjection<Row, C> {
    return this.#and(afterStep(duration))
  }

  /** Expects exactly these rows, and no held lane. */
  // oxlint-disable-next-line unicorn/no-thenable -- it ends the sentence; an early await throws
  then(rows: ExpectedRows<Row>): Promise<void> {
    notAwaitable(rows, 'given(…).when(…)', 'the rows')
    checkExpected(rows, 'then', 'rows by key, such as { o1: { open: 0 } }')
    return this.#check(new Claim('then'), {}, rows)
  }

  /** Expects exactly these held lanes, each with this error; and exactly these rows, if given. */
  thenHeld(held: ExpectedHeld, rows?: ExpectedRows<Row>): Promise<void> {
    checkExpected(held, 'thenHeld', "lanes with their errors, such as { o1: 'RangeError' }")
    return this.#check(new Claim('thenHeld'), held, rows)
  }

  #and(step: Step): GivenProjection<Row, C> {
    return new GivenProjection(this.#projection, this.#past, [...this.#steps, step])
  }

  async #check(claim: Claim, held: ExpectedHeld, rows: ExpectedRows<unknown> | undefined): Promise<void> {
    using watch = new OutsideWatch()
    const { name } = this.#projection
    const projection = watchedProjection(this.#projection, watch)
    const look = async ({ store }: Scene): Promise<Result> => ({
      rows: await rowsOf(store, projection),
      held: await heldLetters(store, [name]),
    })
    const result = await playScenario(projection, this.#past, this.#steps, {
      premise: async (scene) => {
        const found = await look(scene)
        if (found.held.length > 0)
          claim.fail([`${name} holds a given event, so there is nothing to test.`, ...tell(found.held)])
      },
      result: look,
    })
    if (watch.calls.length > 0)
      claim.fail([`The fold of ${name} depends on more than its events.`, ...explain(watch.calls, 'fold')])
    checkHeld(claim, name, held, result.held)
    if (rows) checkRows(claim, name, rows, result.rows)
  }
}

function checkHeld(claim: Claim, name: string, expected: ExpectedHeld, letters: readonly DeadLetter[]): void {
  const heads = new Map<string, DeadLetter>()
  for (const letter of letters) if (!heads.has(letter.lane)) heads.set(letter.lane, letter)
  const actual = Object.fromEntries(Array.from(heads, ([lane, letter]) => [lane, errorOf(letter).type]))
  const evidence = { actual, expected }
  for (const [lane, error] of Object.entries(expected)) {
    const letter = heads.get(lane)
    if (!letter)
      claim.fail(
        [`Expected ${name} to hold ${lane} because of ${shown(error)}, but it does not.`, ...tell(letters)],
        evidence,
      )
    if (!isExpectedError(errorOf(letter), error))
      claim.fail([`Expected ${name} to hold ${lane} because of ${shown(error)}.`, ...tell([letter])], evidence)
  }
  const others = letters.filter(({ lane }) => !Object.hasOwn(expected, lane))
  if (others.length === 0) return
  const hint = 'If this is intended, use .thenHeld(…).'
  claim.fail([`${name} holds lanes unexpectedly.`, ...tell(others), hint], evidence)
}

function checkRows(claim: Claim, name: string, expected: ExpectedRows<unknown>, actual: Record<string, unknown>): void {
  if (diffJson(expected, actual).length === 0) return
  const where = firstDifference(expected, actual)
  claim.fail(
    [`The rows of ${name} differ: ${where}.`, `  Actual    ${shown(actual)}`, `  expected  ${shown(expected)}`],
    {
      actual,
      expected,
    },
  )
}

function tell(letters: readonly DeadLetter[]): string[] {
  return letters.map((letter) => {
    const { lane, event, status } = letter
    const version = event.version === undefined ? '' : ` (version ${event.version})`
    return `  ${lane} ${event.type}${version} is ${status}${status === 'queued' ? ' after it' : `: ${named(errorOf(letter))}`}`
  })
}

function errorOf({ attempts, failure }: DeadLetter): ErrorTraits {
  const last = attempts.at(-1)?.failure ?? failure
  return last
    ? { type: last.errorType, code: last.code, message: last.message }
    : { type: 'nothing', code: null, message: 'it is waiting' }
}

import type { EventCatalog } from '../../event/catalog.ts'
import type { Handler } from '../../handler/handler.ts'
import type { Duration } from '../../runtime/duration.ts'
import { Claim, shown } from './claim.ts'
import { titleOf, type TestEvent } from './events.ts'
import { named } from './expected-error.ts'
import { checkExpected, notAwaitable } from './not-awaitable.ts'
import { type ExpectedOutcome, isExpected, type Outcome, outcomesOf } from './outcomes.ts'
import { afterStep, playScenario, type Scene, type Step, whenStep } from './scenario.ts'

export class GivenHandler<C extends EventCatalog> {
  readonly #handler: Handler
  readonly #past: readonly TestEvent[]
  readonly #steps: readonly Step[]

  constructor(handler: Handler, past: readonly TestEvent[], steps: readonly Step[] = []) {
    this.#handler = handler
    this.#past = past
    this.#steps = steps
  }

  when(events: readonly TestEvent<C>[]): GivenHandler<C> {
    return this.#and(whenStep(events))
  }

  /** Advances time; events that become due are tried. */
  after(duration: Duration): GivenHandler<C> {
    return this.#and(afterStep(duration))
  }

  /** Expects the outcome of each event of `when`, in order. Check the effects of the handler in its dependencies. */
  // oxlint-disable-next-line unicorn/no-thenable -- it ends the sentence; an early await throws
  then(outcomes: readonly ExpectedOutcome[]): Promise<void> {
    notAwaitable(outcomes, 'given(…).when(…)', 'the outcomes')
    checkExpected(outcomes, 'then', "an array of outcomes, such as ['done']", true)
    return this.#check(new Claim('then'), outcomes)
  }

  #and(step: Step): GivenHandler<C> {
    return new GivenHandler(this.#handler, this.#past, [...this.#steps, step])
  }

  async #check(claim: Claim, expected: readonly ExpectedOutcome[]): Promise<void> {
    const handler = this.#handler
    const { name } = handler
    const events = this.#steps.flatMap((step) => (step.step === 'when' ? step.events : []))
    const actual = await playScenario(handler, this.#past, this.#steps, {
      premise: async (scene) => {
        const outcomes = await outcomesIn(scene, handler, scene.given)
        const lines = outcomes.flatMap((outcome, i) =>
          ['done', 'skipped', 'ignored'].includes(outcome.outcome)
            ? []
            : [`  ${titleOf(this.#past, i)} is ${told(outcome)}`],
        )
        if (lines.length > 0)
          claim.fail([`${name} does not apply the given events, so there is nothing to test.`, ...lines])
      },
      result: (scene) => outcomesIn(scene, handler, scene.when),
    })
    const evidence = { actual, expected }
    if (actual.length !== expected.length)
      claim.fail(
        [`${name} got ${actual.length} events with .when(…), but ${expected.length} outcomes are expected.`],
        evidence,
      )
    const lines = actual.flatMap((outcome, i) => {
      const wanted = expected[i] as ExpectedOutcome
      if (isExpected(outcome, wanted)) return []
      return [`  ${titleOf(events, i)} is ${told(outcome)}`, `    expected ${shown(wanted)}`]
    })
    if (lines.length > 0) claim.fail([`The outcomes of ${name} differ:`, ...lines], evidence)
  }
}

function outcomesIn({ store, process, now }: Scene, handler: Handler, events: Scene['when']): Promise<Outcome[]> {
  return outcomesOf(store, handler, process, events, now)
}

function told({ outcome, error, in: delay, reason, ...rest }: Outcome): string {
  const when = delay === undefined ? '' : ` in ${delay} ms`
  const why = reason ?? (error && named(error))
  return `${outcome}${when}${why === undefined ? '' : `, ${why}`} ${shown(rest)}`
}

import { HoldfastError } from '../../errors.ts'
import type { EventCatalog } from '../../event/catalog.ts'
import { checkOptions } from '../../runtime/options.ts'
import { Claim, firstDifference, shown } from './claim.ts'
import { checkEvents, titleOf, type TestEvent } from './events.ts'
import { explain, OutsideWatch } from './outside.ts'
import { type Death, differingKey, isSame, madeOf, type Play, play, type Played } from './play.ts'
import { draw, mostOf, seedOf } from './seed.ts'
import type { Subject, World } from './world.ts'

export interface IdempotentOptions<D> {
  /** The environment of a handler. A projection needs none: its rows are compared. */
  readonly world?: () => World<D>
  /** The maximum number of deaths; if there are more, a random sample. Default: 100. */
  readonly most?: number
  /** The seed of the sample. Default: HOLDFAST_SEED, or 1. */
  readonly seed?: number
}

/**
 * A process may die at any time; then work that was done and not yet recorded is repeated. This function tests a death at every
 * such point: after each call to the outside and before each commit, with the events one by one and all at once. So every event
 * is delivered twice, alone and together with others. The result must equal a run without deaths.
 */
export async function expectIdempotent<C extends EventCatalog, D = undefined>(
  subject: Subject<C, D>,
  events: readonly TestEvent<NoInfer<C>>[],
  options: IdempotentOptions<D> = {},
): Promise<void> {
  const claim = new Claim('expectIdempotent')
  checkOptions(options, 'expectIdempotent', ['world', 'most', 'seed'])
  const { world } = options
  const most = mostOf(options.most, 100)
  const seed = seedOf(options.seed)
  const given: Omit<Play<D>, 'come'> = {
    subject,
    events,
    world: worldFor(subject, world),
  }
  checkEvents(events, 'expectIdempotent')
  // One for all runs, so that globals are replaced only once.
  using during = new DisposableStack()
  during.use(new OutsideWatch())
  const single = await twice(claim, { ...given, come: 'one by one' })
  const whole = await twice(claim, { ...given, come: 'at once' })
  const points = [
    ...single.calls.map((_, i) => ({ come: 'one by one', death: { after: 'call', number: i + 1 } }) as const),
    ...single.commits.map((number) => ({ come: 'one by one', death: { after: 'commits', number } }) as const),
    ...whole.commits.map((number) => ({ come: 'at once', death: { after: 'commits', number } }) as const),
  ]
  for (const point of draw(points, most, seed)) {
    const expected = point.come === 'at once' ? whole : single
    const played = await play({ ...given, ...point })
    if (isSame(expected, played)) continue
    const drawn =
      points.length > most ? [`HOLDFAST_SEED=${seed} selects the same ${most} of ${points.length} points again.`] : []
    deny(claim, events, expected, played, point.death, drawn)
  }
}

/** A handler whose effects are not visible would always pass. */
export function worldFor<D>(subject: unknown, world: (() => World<D>) | undefined): (() => World<D>) | undefined {
  const kind = typeof subject === 'function' ? 'handler' : (subject as { kind?: unknown } | null)?.kind
  if (kind !== 'fold' && kind !== 'handler') {
    throw new HoldfastError(
      'OPTION_INVALID',
      'The subject must be a fold, a handler, or a function that creates a handler.',
      {
        hint: 'For SQL projections, use createTestEngine with a store that runs SQL.',
      },
    )
  }
  if (world !== undefined && typeof world !== 'function')
    throw new HoldfastError('OPTION_INVALID', 'world must be a function.', {
      hint: 'Give world: () => ({ dependencies, observe }), which creates a new world for each run.',
    })
  if (world || kind === 'fold') return world
  throw new HoldfastError('OPTION_INVALID', 'The effects of a handler must be observable.', {
    hint: 'Give world: () => ({ dependencies, observe }), where observe(key) returns the effects for the key.',
  })
}

/** The reference run. It must be reproducible. */
export async function twice<D>(claim: Claim, given: Play<D>): Promise<Played> {
  const one = await play(given)
  const isFold = typeof given.subject === 'object' && given.subject.kind === 'fold'
  if (isFold && one.outside.length > 0)
    claim.fail([`The fold of ${one.name} depends on more than its events.`, ...explain(one.outside, 'fold')])
  if (one.applied === 0) {
    const held = Object.entries(one.held).map(([lane, why]) => `  ${lane} is ${why}`)
    const none = ['It has no function for their types, or skips them.']
    claim.fail([
      `${one.name} applied none of the ${given.events.length} events, so there is nothing to test.`,
      ...(held.length > 0 ? held : none),
    ])
  }
  const other = await play(given)
  if (isSame(one, other)) return one
  const key = differingKey(one, other) ?? ''
  claim.fail(
    [
      `${one.name} is not deterministic: two runs over the same ${given.events.length} events gave different results for ${key}.`,
      `  first   ${shown(madeOf(one, key))}`,
      `  second  ${shown(madeOf(other, key))}`,
      ...explain(other.outside, isFold ? 'fold' : 'handler'),
    ],
    { expected: one.seen, actual: other.seen },
  )
}

function deny(
  claim: Claim,
  events: readonly TestEvent[],
  expected: Played,
  played: Played,
  death: Death,
  drawn: readonly string[],
): never {
  const key = differingKey(expected, played) ?? ''
  const [before, after] = [madeOf(expected, key), madeOf(played, key)]
  const which = played.repeated.map((index) => titleOf(events, index)).join(', ')
  const when =
    death.after === 'call'
      ? `The process died after the call of ${expected.calls[death.number - 1]} (call ${death.number} of ${expected.calls.length}), before its answer;`
      : 'The process died before its work was recorded;'
  claim.fail(
    [
      which === ''
        ? `${expected.name} does not survive a restart: the result for ${key} differs.`
        : `${expected.name} is not idempotent: ${which} was handled twice, and the result for ${key} differs.`,
      `  once   ${shown(before)}`,
      `  twice  ${shown(after)}`,
      `  ${firstDifference(before, after) ?? 'They are not equal'}.`,
      `${when} the next process repeated the work that was not recorded.`,
      ...(which === ''
        ? ['Keep state in the rows or in a service: memory is lost.']
        : [
            'Pass ctx.idempotencyKey to the called service: it is the same for each attempt. Or make the effect repeatable.',
          ]),
      ...drawn,
      ...explain(played.outside, 'handler'),
    ],
    { expected: before, actual: after },
  )
}

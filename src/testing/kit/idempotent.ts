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
  /** What is outside of a handler. A projection needs none: its rows are what is seen. */
  readonly world?: () => World<D>
  /** How many deaths are tried at the most; from more than that so many are drawn. 100 unless you say otherwise. */
  readonly most?: number
  /** What they are drawn by. HOLDFAST_SEED, or 1, unless you say otherwise. */
  readonly seed?: number
}

/**
 * A process may die at any time, and then what it had done and not yet noted is done again. This lets it die at every such point: after each
 * call to the outside, and before each commit, with the events taken one by one and all at once; so every event is delivered twice, and every
 * number of them. In the end everything must be as if nothing had happened.
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
  // One for all runs, so that the globals are exchanged only once.
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
      points.length > most ? [`HOLDFAST_SEED=${seed} draws the same ${most} of ${points.length} points again.`] : []
    deny(claim, events, expected, played, point.death, drawn)
  }
}

/** A handler whose effects can't be seen would pass whatever it does. */
export function worldFor<D>(subject: unknown, world: (() => World<D>) | undefined): (() => World<D>) | undefined {
  const kind = typeof subject === 'function' ? 'handler' : (subject as { kind?: unknown } | null)?.kind
  if (kind !== 'fold' && kind !== 'handler') {
    throw new HoldfastError(
      'OPTION_INVALID',
      'This can be asked of a fold, of a handler, or of what makes a handler.',
      {
        hint: 'For SQL of your own, use createTestEngine with a store that runs it.',
      },
    )
  }
  if (world !== undefined && typeof world !== 'function')
    throw new HoldfastError('OPTION_INVALID', 'world is not a function.', {
      hint: 'Give world: () => ({ dependencies, observe }): it makes a world anew for each run.',
    })
  if (world || kind === 'fold') return world
  throw new HoldfastError('OPTION_INVALID', 'What a handler does to the outside can only be seen there.', {
    hint: 'Give world: () => ({ dependencies, observe }), where observe(key) tells what the key has come to.',
  })
}

/** The run that all others are compared with. It must come out the same by itself. */
export async function twice<D>(claim: Claim, given: Play<D>): Promise<Played> {
  const one = await play(given)
  const isFold = typeof given.subject === 'object' && given.subject.kind === 'fold'
  if (isFold && one.outside.length > 0)
    claim.fail([`The fold of ${one.name} depends on more than its events.`, ...explain(one.outside, 'fold')])
  if (one.applied === 0) {
    const held = Object.entries(one.held).map(([lane, why]) => `  ${lane} is ${why}`)
    const none = ['It has no function for their types, or passes them over.']
    claim.fail([
      `${one.name} went through with none of the ${given.events.length} events, so there is nothing to find out.`,
      ...(held.length > 0 ? held : none),
    ])
  }
  const other = await play(given)
  if (isSame(one, other)) return one
  const key = differingKey(one, other) ?? ''
  claim.fail(
    [
      `${one.name} does something else each time: two runs over the same ${given.events.length} events came out differently for ${key}.`,
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
      ? `The process died after it had called ${expected.calls[death.number - 1]} (call ${death.number} of ${expected.calls.length}), before the answer was there;`
      : 'The process died before what it had done was written down;'
  claim.fail(
    [
      which === ''
        ? `${expected.name} does not survive a restart: ${key} came out differently.`
        : `${expected.name} is not idempotent: ${which} was handled twice, and ${key} came out differently.`,
      `  once   ${shown(before)}`,
      `  twice  ${shown(after)}`,
      `  ${firstDifference(before, after) ?? 'They are not equal'}.`,
      `${when} the next one did again what was not noted.`,
      ...(which === ''
        ? ['What it knows must be in the rows or with others: what is only in memory is gone.']
        : ['Hand ctx.idempotencyKey on to whoever is called: it is the same each time. Or do what can be done twice.']),
      ...drawn,
      ...explain(played.outside, 'handler'),
    ],
    { expected: before, actual: after },
  )
}

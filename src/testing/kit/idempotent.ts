import { HoldfastError } from '../../errors.ts'
import type { EventCatalog } from '../../event/catalog.ts'
import { checkOptions } from '../../runtime/options.ts'
import { Claim, firstDifference, shown } from './claim.ts'
import { titleOf, type TestEvent } from './events.ts'
import { explain } from './outside.ts'
import { type Death, differingKey, isSame, madeOf, type Play, play, type Played } from './play.ts'
import { draw, seedOf } from './seed.ts'
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
  const { world, most = 100 } = options
  const seed = seedOf(options.seed)
  const given: Omit<Play<D>, 'come'> = {
    subject,
    events,
    world: worldFor(subject, world),
  }
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
    claim.fail([`The fold of ${one.name} depends on more than its events.`, ...explain(one.outside)])
  const other = await play(given)
  if (isSame(one, other)) return one
  const key = differingKey(one, other) ?? ''
  claim.fail(
    [
      `${one.name} does something else each time: two runs over the same ${given.events.length} events came out differently for ${key}.`,
      `  first   ${shown(madeOf(one, key))}`,
      `  second  ${shown(madeOf(other, key))}`,
      ...explain(other.outside),
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
      ...explain(played.outside),
    ],
    { expected: before, actual: after },
  )
}

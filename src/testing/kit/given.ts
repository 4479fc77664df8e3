import type { Commands } from '../../command/commands.ts'
import { HoldfastError } from '../../errors.ts'
import type { EventCatalog } from '../../event/catalog.ts'
import type { Handler } from '../../handler/handler.ts'
import type { Projection } from '../../projection/projection.ts'
import { checkList, type TestEvent } from './events.ts'
import { type CommandParts, GivenCommands } from './given-commands.ts'
import { GivenHandler } from './given-handler.ts'
import { GivenProjection } from './given-projection.ts'

/**
 * Begins a test of one projection, handler or kind of command: `await given(balances, past).when(events).then(rows)`. The real engine runs
 * it, in virtual time, on a store of its own. What is given must go through; what comes of the rest is what the test is about.
 */
export function given<Row, Columns, C extends EventCatalog>(
  projection: Projection<Row, Columns, C>,
  events?: readonly TestEvent<NoInfer<C>>[],
): GivenProjection<Row, C>
export function given<C extends EventCatalog>(
  handler: Handler<C>,
  events?: readonly TestEvent<NoInfer<C>>[],
): GivenHandler<C>
/** Commands are made on the store of the test: give what makes them. */
export function given<C extends EventCatalog, State>(
  commands: (parts: CommandParts) => Commands<C, State>,
  events?: readonly TestEvent<NoInfer<C>>[],
): GivenCommands<C, State>
export function given(
  subject: Projection | Handler | ((parts: CommandParts) => Commands<EventCatalog, unknown>),
  events: readonly TestEvent[] = [],
): unknown {
  checkList(events, 'given')
  if (typeof subject === 'function') return new GivenCommands(subject, events)
  switch (subject?.kind) {
    case 'fold':
      return new GivenProjection(subject, events)
    case 'handler':
      return new GivenHandler(subject, events)
    default:
      throw new HoldfastError('OPTION_INVALID', 'given needs a fold, a handler, or a function that makes commands.', {
        hint: 'For SQL of your own, use createTestEngine with a store that runs it.',
      })
  }
}

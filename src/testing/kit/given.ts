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
 * Starts a test of a projection, a handler or commands: `await given(balances, past).when(events).then(rows)`. The real engine
 * runs it, in virtual time, on its own store. The given events must be applied; the test is about the events of `when`.
 */
export function given<Row, Columns, C extends EventCatalog>(
  projection: Projection<Row, Columns, C>,
  events?: readonly TestEvent<NoInfer<C>>[],
): GivenProjection<Row, C>
export function given<C extends EventCatalog>(
  handler: Handler<C>,
  events?: readonly TestEvent<NoInfer<C>>[],
): GivenHandler<C>
/** For commands, pass a function that creates them with the store of the test. */
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
      throw new HoldfastError('OPTION_INVALID', 'given needs a fold, a handler, or a function that creates commands.', {
        hint: 'For SQL projections, use createTestEngine with a store that runs SQL.',
      })
  }
}

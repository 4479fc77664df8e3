import { HoldfastError } from '../errors.ts'
import type { Subscription } from './subscription.ts'

/** The function that empties the user's own tables; undefined if Holdfast owns the rows. Throws if the subscription can't be reset. */
export function emptierOf({ name, consumer, source }: Subscription): ((handle: unknown) => unknown) | undefined {
  if (consumer.kind === 'handler') {
    throw new HoldfastError('OPTION_INVALID', `${name} is a handler: a reset would repeat all its effects.`, {
      hint: 'Define it under another name instead.',
    })
  }
  if (consumer.kind === 'sql' && !consumer.reset) {
    throw new HoldfastError('OPTION_INVALID', `${name} has no function that empties its tables.`, {
      hint: 'Give defineSqlProjection a reset function.',
    })
  }
  if (source) {
    throw new HoldfastError('OPTION_INVALID', `${name} reads from ${source.name}, not from the log.`, {
      hint: 'Only subscriptions that read the log can be reset.',
    })
  }
  return consumer.kind === 'sql' ? consumer.reset : undefined
}

import { HoldfastError } from '../errors.ts'
import type { Subscription } from './subscription.ts'

/** What empties the user's own tables, for one that can begin anew; undefined where the rows are ours. Throws for any other. */
export function emptierOf({ name, consumer, source }: Subscription): ((handle: unknown) => unknown) | undefined {
  if (consumer.kind === 'handler') {
    throw new HoldfastError('OPTION_INVALID', `${name} is a handler: to begin anew would do everything again.`, {
      hint: 'For that, define it under another name.',
    })
  }
  if (consumer.kind === 'sql' && !consumer.reset) {
    throw new HoldfastError('OPTION_INVALID', `${name} doesn't say how to empty its tables.`, {
      hint: 'Give defineProjection a reset.',
    })
  }
  if (source) {
    throw new HoldfastError('OPTION_INVALID', `${name} reads from ${source.name}, not from the log.`, {
      hint: 'Only what reads the log can begin anew.',
    })
  }
  return consumer.kind === 'sql' ? consumer.reset : undefined
}

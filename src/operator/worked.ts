import { createEngine, type Engine } from '../engine/engine.ts'
import type { Logger } from '../engine/events.ts'
import { HoldfastError } from '../errors.ts'
import type { Redrive } from '../redrive/redrive.ts'
import { checkOptions } from '../runtime/options.ts'
import type { OperatorParts } from './parts.ts'
import { findRedrive, isOver } from './progress.ts'

export interface Worked {
  /** `engine`: others carried it out. `here`: nobody was there, and this process did at least a part of it. */
  readonly by: 'engine' | 'here'
  readonly redrive: Redrive
}

export interface WorkOptions {
  /** Ends the waiting. A redrive that was begun here is kept, and goes on when somebody works on it. */
  readonly signal?: AbortSignal
  /** Where the engine of this process writes. Nowhere unless you say: the errors it tells of may have values of payloads in them. */
  readonly logger?: Logger
}

const silent: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined }

const lookMs = 250
// Asking who is there writes to the store, if only for a moment.
const askMs = 1_000

/**
 * Waits for the end of a redrive, and does not wait in vain:
 *
 *     somebody runs the subscription ──► wait, and look again: they may go
 *     nobody does                    ──► an engine of our own, for its letters alone, until the redrive is over
 */
export async function ensureWorked(parts: OperatorParts, id: string, options: WorkOptions = {}): Promise<Worked> {
  checkOptions(options, 'ensureWorked', ['signal', 'logger'])
  const { signal, logger = silent } = options
  const { store, runtime } = parts
  const { subscription } = await findRedrive(parts, id)
  let engine: Engine | undefined
  let failed: { readonly error: unknown } | undefined
  let by: Worked['by'] = 'engine'
  let askedAt = Number.NEGATIVE_INFINITY
  try {
    for (;;) {
      const redrive = await findRedrive(parts, id)
      if (isOver(redrive) || signal?.aborted) return { by, redrive }
      if (failed) throw failed.error
      const [state] = await store.subscriptions.partitions(subscription)
      if (state?.pause) throw paused(subscription, state.pause.reason)
      const isTime = !engine && runtime.clock.mono() - askedAt >= askMs
      if (isTime) askedAt = runtime.clock.mono()
      if (isTime && !(await isRun(parts, subscription))) {
        by = 'here'
        const own = await parts.liveOf(subscription)
        engine = createEngine({ store, subscriptions: [own], only: 'letters', logger, ...runtime })
        engine.on('subscription.state', ({ to }) => {
          if (to.state === 'failed') failed ??= { error: to.error }
        })
        await engine.start()
      }
      await runtime.timers.sleep(lookMs, signal)
    }
  } finally {
    await engine?.stop()
  }
}

/** Whether a process that lives runs it. Who attends for no time at all sees that, and is seen by nobody. */
async function isRun({ store, nextId }: OperatorParts, subscription: string): Promise<boolean> {
  const owner = `operator-${nextId()}`
  const [view] = await store.subscriptions.attend({ owner, subscriptions: [subscription], leaseMs: 0 })
  await store.subscriptions.leave(owner)
  return view?.members.some(({ isSelf }) => !isSelf) === true
}

function paused(subscription: string, reason: string): HoldfastError {
  return new HoldfastError('SUBSCRIPTION_PAUSED', `${subscription} is paused: ${reason}. Nothing of it is redriven.`, {
    hint: 'Resume it; the redrive is kept, and goes on then.',
  })
}

import { createEngine, type Engine } from '../engine/process/engine.ts'
import type { Logger } from '../engine/events.ts'
import { HoldfastError } from '../errors.ts'
import type { Redrive } from '../redrive/redrive.ts'
import { checkOptions } from '../runtime/options.ts'
import type { OperatorParts } from './parts.ts'
import { findRedrive, isOver } from './progress.ts'

export interface Worked {
  /** `engine`: other processes performed the redrive. `here`: no process ran the subscription, and this one performed at least a part. */
  readonly by: 'engine' | 'here'
  readonly redrive: Redrive
}

export interface WorkOptions {
  /** Stops waiting. The redrive stays recorded and continues when an engine runs the subscription. */
  readonly signal?: AbortSignal
  /** The logger of the engine that this process starts. Default: none, because logged errors can contain payload values. */
  readonly logger?: Logger
  /** See `EngineOptions.allowEffects`: a redrive on a store that letters were imported into calls handlers too. Default: false. */
  readonly allowEffects?: boolean
}

const silent: Logger = { info: () => undefined, warn: () => undefined, error: () => undefined }

const lookMs = 250
// The check writes to the store.
const askMs = 1_000

/**
 * Waits until a redrive ends, and checks repeatedly that an engine works on it:
 *
 *     a process runs the subscription  ──► wait and check again: the process may stop
 *     no process runs it               ──► start an engine here, for letters only, until the redrive ends
 */
export async function ensureWorked(parts: OperatorParts, id: string, options: WorkOptions = {}): Promise<Worked> {
  checkOptions(options, 'ensureWorked', ['signal', 'logger', 'allowEffects'])
  const { signal, logger = silent, allowEffects = false } = options
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
      if (state?.pause) throw paused(redrive, state.pause.reason)
      const isTime = !engine && runtime.clock.mono() - askedAt >= askMs
      if (isTime) askedAt = runtime.clock.mono()
      if (isTime && !(await isRun(parts, subscription))) {
        by = 'here'
        const own = await parts.liveOf(subscription)
        engine = createEngine({ store, subscriptions: [own], only: 'letters', logger, allowEffects, ...runtime })
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

async function isRun({ store }: OperatorParts, subscription: string): Promise<boolean> {
  return (await store.subscriptions.members(subscription)).length > 0
}

function paused({ id, subscription }: Redrive, reason: string): HoldfastError {
  return new HoldfastError('SUBSCRIPTION_PAUSED', `The redrive ${id} waits: ${subscription} is paused (${reason}).`, {
    hint: 'The redrive is recorded and runs when the subscription is resumed.',
  })
}

import type { Handler } from '../../handler/handler.ts'
import type { Projection } from '../../projection/projection.ts'
import { type Duration, toMs } from '../../runtime/duration.ts'
import type { Store } from '../../store.ts'
import { defineSubscription } from '../../subscription/subscription.ts'
import { createVirtualRuntime } from '../virtual.ts'
import { appendAll, checkList, type PlacedEvent, type TestEvent } from './events.ts'
import { createProcess, type TestProcess, turns } from './process.ts'
import { createKitStore } from './store.ts'

/** What happens after the given events. */
export type Step =
  | { readonly step: 'when'; readonly events: readonly TestEvent[] }
  | { readonly step: 'after'; readonly ms: number }

export interface Scene {
  readonly store: Store
  readonly process: TestProcess
  /** The given events, and the later ones. */
  readonly given: readonly PlacedEvent[]
  readonly when: readonly PlacedEvent[]
  readonly now: number
}

export function whenStep(events: readonly TestEvent[]): Step {
  checkList(events, '.when(…)')
  return { step: 'when', events }
}

export function afterStep(duration: Duration): Step {
  return { step: 'after', ms: toMs(duration, 'The time of after') }
}

/** Runs the scenario and returns its result before the store is closed. */
export async function playScenario<T>(
  consumer: Projection | Handler,
  past: readonly TestEvent[],
  steps: readonly Step[],
  look: { readonly premise: (scene: Scene) => Promise<void>; readonly result: (scene: Scene) => Promise<T> },
): Promise<T> {
  const runtime = createVirtualRuntime()
  await using store = await createKitStore(runtime.clock)
  // One partition in any store, so that the order of events is the order of outcomes.
  const subscription = defineSubscription(consumer, { partitions: 1 })
  const process = createProcess({ ...runtime, store, subscriptions: [subscription] })
  const when: PlacedEvent[] = []
  try {
    const given = await appendAll(store, runtime, [consumer], past)
    await process.settle()
    const scene = (): Scene => ({ store, process, given, when, now: runtime.clock.now() })
    await look.premise(scene())
    for (const step of steps) {
      if (step.step === 'when') {
        when.push(...(await appendAll(store, runtime, [consumer], step.events)))
        // Not until everything is settled: a call may hang until its timeout.
        await turns()
      } else await runtime.advance(step.ms)
    }
    await process.settle()
    return await look.result(scene())
  } finally {
    await process.stop((ms) => runtime.advance(ms))
  }
}

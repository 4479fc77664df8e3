import { setTimeout } from 'node:timers/promises'
import {
  defineEvents,
  defineHandler,
  definePolicy,
  exponential,
  failure,
  type Handler,
  park,
  retry,
  type StandardSchema,
} from 'holdfast'
import type { EvidenceWriter } from './evidence.ts'

/**
 * What an event makes its handler do:
 *
 *     go      have its effect
 *     hiccup  fail a few times before that, by a fault that passes
 *     refuse  fail every time
 */
export type Act = 'go' | 'hiccup' | 'refuse'

export interface Task {
  readonly act: Act
  /** How long the effect takes. */
  readonly ms: number
}

// By hand: these processes start hundreds of times, and a schema library would be most of their start.
const task: StandardSchema<Task> = {
  '~standard': {
    version: 1,
    vendor: 'handler-tests',
    validate: (value) => {
      const { act, ms } = (value ?? {}) as Task
      return typeof act === 'string' && Number.isSafeInteger(ms)
        ? { value: { act, ms } }
        : { issues: [{ message: 'is no task' }] }
    },
  },
}

export const taskEvents = defineEvents({ Asked: task })
export const subscription = 'effects'

/** The first retry is taken in place, and the second waits as a letter. */
const hiccups = 2
const backoff = exponential('100ms', { factor: 3 })

/** Its effect is a line that nothing can take back once it is written, not even the death of the process. */
export function effectsHandler(evidence: EvidenceWriter, maxDeaths: number): Handler {
  return defineHandler(subscription, {
    events: taskEvents,
    concurrency: 16,
    failure: definePolicy({
      transient: retry({ attempts: hiccups + 3, backoff }).then(park),
      // Several keys have hiccups at a time here, and each is its own.
      outage: false,
      maxDeaths,
    }),
    on: {
      Asked: async ({ id, key, version, data: { act, ms } }, { idempotencyKey, attempt }) => {
        const effect = { id, key, version, idempotencyKey, attempt }
        evidence.write({ phase: 'begin', ...effect })
        await setTimeout(ms)
        if (act === 'refuse' || (act === 'hiccup' && attempt <= hiccups)) {
          evidence.write({ phase: 'failed', ...effect })
          throw act === 'refuse' ? failure.permanent('refused') : failure.transient('not now')
        }
        evidence.write({ phase: 'end', ...effect })
      },
    },
  })
}

import { setTimeout } from 'node:timers/promises'
import {
  defineHandler,
  definePolicy,
  defineProjection,
  exponential,
  failure,
  type Handler,
  park,
  type Projection,
  retry,
  type SqlProjection,
} from 'holdfast'
import { sqlProjection } from '../../src/projection/sql-projection.ts'
import type { EvidenceWriter } from './evidence.ts'
import { perform, type Task, taskEvents } from './tasks.ts'

// Everything that can be made of an event: an effect outside, a row, and SQL. All of them do what the event says, if it says so to them.

export const consumers = { effects: effectsHandler, rows: rowsProjection, sql: effectlessSql }
export type Name = keyof typeof consumers

export const nowhere: EvidenceWriter = { write: () => undefined }

/** The first retry is taken in place, and the second waits as a letter. */
const backoff = exponential('100ms', { factor: 3 })
const mostHiccups = 3

/** Its effect is a line that nothing can take back once it is written, not even the death of the process. */
export function effectsHandler(evidence: EvidenceWriter, maxDeaths?: number): Handler {
  return defineHandler('effects', {
    events: taskEvents,
    concurrency: 16,
    failure: definePolicy({
      transient: retry({ attempts: mostHiccups + 2, backoff }).then(park),
      // Several keys have hiccups at a time here, and each is its own.
      outage: false,
      ...(maxDeaths !== undefined && { maxDeaths }),
    }),
    on: {
      Asked: async ({ id, key, version, data }, { idempotencyKey, attempt }) => {
        const effect = { id, key, version, idempotencyKey, attempt }
        evidence.write({ phase: 'begin', ...effect })
        const what = actOf('effects', data)
        if (attempt > data.hiccups) perform(what)
        await setTimeout(data.ms)
        if (what === 'refuse' || attempt <= data.hiccups) {
          evidence.write({ phase: 'failed', ...effect })
          throw what === 'refuse' ? failure.permanent('refused') : failure.transient('not now')
        }
        evidence.write({ phase: 'end', ...effect })
      },
    },
  })
}

function rowsProjection(): Projection {
  return defineProjection('rows', {
    events: taskEvents,
    initial: () => ({ seen: 0 }),
    on: {
      Asked: ({ seen }, { data }) => {
        perform(actOf('rows', data))
        return { seen: seen + 1 }
      },
    },
  })
}

function effectlessSql(_evidence: EvidenceWriter, _maxDeaths: number | undefined, dialect: string): SqlProjection {
  return sqlProjection(dialect, 'sql', {
    events: taskEvents,
    on: { Asked: ({ data }) => perform(actOf('sql', data)) },
  })
}

function actOf(name: Name, { act: what, who = name }: Task) {
  return who === name ? what : 'go'
}

import { appendFileSync } from 'node:fs'
import { defineEvents, defineHandler, defineProjection, definePolicy, failure } from 'holdfast'
import { z } from 'zod'

// What is redriven while processes die: a fold that notes every step out of order, and a handler whose effects are lines of a file.

export const steps = defineEvents({ Stepped: z.object({ n: z.number() }) })

/** While the bug is there, every lane is held at its second event. */
const isHeld = (n: number, hasBug: boolean) => hasBug && n === 2

export function foldOf(hasBug: boolean) {
  return defineProjection('walks', {
    events: steps,
    initial: () => ({ last: 0, count: 0, outOfOrder: 0 }),
    on: {
      Stepped: ({ last, count, outOfOrder }, { data }) => {
        if (isHeld(data.n, hasBug)) throw new RangeError('a bug')
        return { last: data.n, count: count + 1, outOfOrder: outOfOrder + (data.n === last + 1 ? 0 : 1) }
      },
    },
    // These processes are killed in the middle of their work, and no event is to blame for that.
    maxDeaths: 1_000,
  })
}

export function handlerOf(hasBug: boolean, effects: string) {
  return defineHandler('calls', {
    events: steps,
    on: {
      Stepped: ({ key, data }, { idempotencyKey }) => {
        if (isHeld(data.n, hasBug)) throw failure.permanent('a bug')
        appendFileSync(effects, `${JSON.stringify([key, data.n, idempotencyKey])}\n`)
      },
    },
    failure: definePolicy({ maxDeaths: 1_000 }),
    concurrency: 8,
  })
}

import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Look } from './holders.ts'
import { nap } from '../connection/nap.ts'
import { createWatch } from './watch.ts'

const time = { sleep: nap, mono: () => performance.now() }

const lookAt = (...holders: string[]): Look => ({
  server: 's',
  isReplica: false,
  top: 9,
  isFilled: false,
  holders: new Set(holders),
})

/** Looks that are answered when the test says so, in the order in which they were asked for. */
function answering() {
  const asked: PromiseWithResolvers<Look>[] = []
  const look = () => {
    const one = Promise.withResolvers<Look>()
    asked.push(one)
    return one.promise
  }
  const nth = async (n: number) => {
    while (!asked[n]) await setTimeout(1)
    return asked[n]
  }
  return { look, nth }
}

describe('the watch over those who append', () => {
  // With a slow answer, whoever joined meanwhile took holders for gone that had come after the look, and readers passed their gap.
  it('tells nobody of a look that was taken before they joined', async () => {
    using stop = new DisposableStack()
    const end = stop.adopt(new AbortController(), (controller) => controller.abort())
    const { look, nth } = answering()
    const watch = createWatch(look, time, end.signal)
    const told: string[] = []
    watch.add(({ holders }) => told.push(`first ${[...holders].join()}`) > 0)
    const early = await nth(0)
    watch.add(({ holders }) => told.push(`second ${[...holders].join()}`) > 0)
    early.resolve(lookAt())
    const later = await nth(1)
    expect(told).toEqual(['first '])
    later.resolve(lookAt('7:3/9'))
    while (told.length < 2) await setTimeout(1)
    expect(told).toEqual(['first ', 'second 7:3/9'])
  })

  it('keeps everybody waiting when the server can not be asked', async () => {
    using stop = new DisposableStack()
    const end = stop.adopt(new AbortController(), (controller) => controller.abort())
    const { look, nth } = answering()
    const watch = createWatch(look, time, end.signal)
    const done = Promise.withResolvers<void>()
    watch.add(() => {
      done.resolve()
      return true
    })
    ;(await nth(0)).reject(new Error('gone'))
    ;(await nth(1)).resolve(lookAt())
    await expect(done.promise).resolves.toBeUndefined()
  })
})

import { createVirtualRuntime } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { WakeableSleep } from './wakeable-sleep.ts'

function napping() {
  const runtime = createVirtualRuntime()
  const nap = new WakeableSleep(runtime.timers)
  const ended: number[] = []
  const take = (ms: number) => void nap.take(ms).then(() => ended.push(runtime.clock.mono()))
  return { runtime, nap, take, ended }
}

it('ends when its time is over, or when somebody ends it', async () => {
  const { runtime, nap, take, ended } = napping()
  take(100)
  await runtime.advance(99)
  expect(ended).toEqual([])
  await runtime.advance(1)
  take(100)
  await runtime.advance(30)
  nap.wake()
  await runtime.advance(0)
  expect(ended).toEqual([100, 130])
})

it('ends at once when it was ended before it began, and only the next one', async () => {
  const { runtime, nap, take, ended } = napping()
  nap.wake()
  take(100)
  await runtime.advance(0)
  expect(ended).toEqual([0])
  take(100)
  await runtime.advance(50)
  expect(ended).toEqual([0])
  await runtime.advance(50)
  expect(ended).toEqual([0, 100])
})

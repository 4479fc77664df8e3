import { createVirtualRuntime } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { WakeableSleep } from './wakeable-sleep.ts'
import { retryForever } from './retry-forever.ts'

function failing(times: number, u32 = () => 2 ** 32 - 1) {
  const runtime = createVirtualRuntime()
  const stopping = new AbortController()
  const nap = new WakeableSleep(runtime.timers)
  const waits: number[] = []
  const attempts: number[] = []
  let calls = 0
  const outcome = retryForever(
    async () => {
      if (++calls <= times) throw new Error(`failure ${calls}`)
      return calls
    },
    {
      signal: stopping.signal,
      random: { u32 },
      nap,
      isFinal: (error) => (error as Error).message === 'failure 20',
      failed: (_error, attempt, waitMs) => {
        attempts.push(attempt)
        waits.push(waitMs)
      },
    },
  )
  return { runtime, stopping, nap, waits, attempts, outcome, calls: () => calls }
}

describe('who persists', () => {
  it('gives what worked, without a wait', async () => {
    const { outcome, waits } = failing(0)
    expect(await outcome).toBe(1)
    expect(waits).toEqual([])
  })

  it('waits twice as long each time, up to ten seconds', async () => {
    const { runtime, outcome, waits, attempts } = failing(10)
    await runtime.advance(60_000)
    expect(await outcome).toBe(11)
    expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000])
    expect(attempts).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  it('waits half of it at the least', async () => {
    const { runtime, outcome, waits } = failing(9, () => 0)
    await runtime.advance(60_000)
    expect(await outcome).toBe(10)
    expect(waits).toEqual([50, 100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  })

  it('goes on at once when it is woken', async () => {
    const { nap, outcome, runtime } = failing(1)
    await runtime.advance(0)
    nap.wake()
    expect(await outcome).toBe(2)
    expect(runtime.clock.mono()).toBe(0)
  })

  it('throws what no wait can mend', async () => {
    const { runtime, outcome, waits } = failing(99)
    const [thrown] = await Promise.all([outcome.catch((error: unknown) => error), runtime.advance(300_000)])
    expect(thrown).toMatchObject({ message: 'failure 20' })
    expect(waits).toHaveLength(19)
  })

  it('gives nothing when it is stopped, while it waits or while it tries', async () => {
    const { runtime, outcome, stopping, nap, calls } = failing(99)
    await runtime.advance(0)
    stopping.abort()
    nap.wake()
    expect(await outcome).toBeUndefined()
    expect(calls()).toBe(1)

    const other = failing(20)
    other.stopping.abort()
    expect(await other.outcome).toBeUndefined()
    expect(other.waits).toEqual([])
  })
})

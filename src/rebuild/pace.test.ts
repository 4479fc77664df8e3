import { describe, expect, it } from 'vitest'
import { createVirtualRuntime } from '../testing/virtual.ts'
import { Pace, type PaceOptions } from './pace.ts'

const longestRestMs = 2_500

function paceOf(options: Partial<PaceOptions> = {}, live = { position: 0, owner: 'one' as string | undefined }) {
  const runtime = createVirtualRuntime()
  const log = { head: 0 }
  const partitions = async () => [{ owner: live.owner, checkpoint: { position: live.position } }]
  const pace = new Pace({
    runtime,
    live: 'balances',
    store: { log: { head: async () => log.head }, subscriptions: { partitions } } as unknown as PaceOptions['store'],
    rate: undefined,
    load: 0.5,
    longestRestMs,
    signal: new AbortController().signal,
    ...options,
  })
  /** Works for a while, rests, and gives how long the rest was. */
  const restAfter = async (workMs: number, events = 1): Promise<number> => {
    await runtime.advance(workMs)
    const begun = runtime.clock.mono()
    let ended: number | undefined
    const resting = pace.rest(0, events).then(() => (ended = runtime.clock.mono()))
    for (;;) {
      await runtime.advance(0)
      if (ended !== undefined) break
      await runtime.advance(10)
    }
    await resting
    return ended - begun
  }
  return { pace, runtime, restAfter, log, live }
}

describe('the pace of a rebuild', () => {
  it('rests as long as it works, with half the load', async () => {
    const { restAfter } = paceOf()
    await restAfter(0)
    expect(await restAfter(100)).toBe(100)
    expect(await restAfter(40)).toBe(40)
  })

  it('does not rest at all with all of the load', async () => {
    const { restAfter } = paceOf({ load: 1 })
    await restAfter(0)
    expect(await restAfter(100)).toBe(0)
  })

  it('keeps to its rate over all partitions', async () => {
    const { pace, runtime } = paceOf({ load: 1, rate: 1_000 })
    const begun = runtime.clock.mono()
    const done: number[] = []
    const work = [0, 1, 2].map((partition) =>
      pace.rest(partition, 500).then(() => done.push(runtime.clock.mono() - begun)),
    )
    await runtime.advance(5_000)
    await Promise.all(work)
    expect(done).toEqual([500, 1_000, 1_500])
  })

  it('never rests so long that a lease could run out', async () => {
    const { restAfter } = paceOf({ load: 1, rate: 1 })
    expect(await restAfter(10, 1_000_000)).toBe(longestRestMs)
  })

  it('rests longer and longer while the live one is behind, and less again when it has caught up', async () => {
    const { restAfter, log, live } = paceOf()
    await restAfter(0)
    log.head = 1_000
    const rests: number[] = []
    for (let i = 0; i < 12; i++) rests.push(await restAfter(100))
    live.position = 1_000
    for (let i = 0; i < 12; i++) rests.push(await restAfter(100))
    expect(rests[0]).toBe(100)
    expect(Math.max(...rests)).toBeGreaterThan(1_000)
    expect(rests.at(-1)).toBeLessThan(110)
  })

  it('waits for nobody where nobody runs the live one', async () => {
    const { restAfter, log } = paceOf({}, { position: 0, owner: undefined })
    await restAfter(0)
    log.head = 1_000
    for (let i = 0; i < 12; i++) expect(await restAfter(100)).toBe(100)
  })
})

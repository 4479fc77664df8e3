import { createEngine, createLog, defineEvents, defineProjection } from 'holdfast'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { describeStores } from '../rebuild/stores.ts'

// Lanes that were held shortly before a stop are logged by the stop. A logger that was closed by then made the stop wait for its timeout, be
// forced, and reject without a handler.
describeStores('a logger that throws at the stop', (open) => {
  it('does not keep an engine from its stop', async () => {
    await using place = await open()
    const { store } = place
    const events = defineEvents({ Failed: z.object({ n: z.int() }) })
    const bad = defineProjection('bad', {
      events,
      initial: () => ({ n: 0 }),
      on: {
        Failed: () => {
          throw new Error('never')
        },
      },
    })
    const log = createLog({ store, events })
    let isClosed = false
    let thrown = 0
    const say = () => {
      if (!isClosed) return
      thrown++
      throw new Error('the logger is closed')
    }
    const engine = createEngine({ store, subscriptions: [bad], logger: { info: say, warn: say, error: say } })
    await engine.start()
    for (const key of ['a', 'b']) {
      await log.append(key, [{ type: 'Failed', data: { n: 1 } }])
      await engine.drain()
    }
    isClosed = true
    expect(await engine.stop({ timeout: '10s' })).toEqual({ forced: false })
    expect(thrown).toBeGreaterThan(0)
  })
})

import { createEngine, createLog, createOperator, defineHandler, definePolicy, park } from 'holdfast'
import { expect, it } from 'vitest'
import { systemRuntime } from '../../src/runtime/system.ts'
import { balances, bank, credited, debited } from '../fixtures.ts'
import { describeStores } from '../rebuild/stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

const mails = defineHandler('mails', {
  events: bank,
  failure: definePolicy({ permanent: park, unknown: park }),
  on: {
    Debited: () => {
      throw new TypeError('no such account')
    },
  },
})

// A projection's lane got the time of the failed redrive: `status` and `doctor` showed an old problem as a new one.
describeStores('a redrive that fails', (open) => {
  it.each([balances, mails])('leaves the time since when a lane of $name is held', async (consumer) => {
    await using place = await open()
    const { store } = place
    let later = 0
    const { clock: system } = systemRuntime
    const clock = { ...system, now: () => system.now() + later, mono: () => system.mono() }
    const subscriptions = [consumer]
    await createLog({ store, events: bank }).append('a', [debited(1), credited(1)])
    await using engine = createEngine({ store, subscriptions, clock, logger: silent })
    await engine.start()
    await engine.drain()
    const before = await store.letters.lane(consumer.name, 'a')
    later = 19 * 60_000
    const operator = createOperator({ store, subscriptions, by: 'ada', clock })
    const { redrive } = await operator.redrive(consumer.name, { all: true }, { reason: 'x' })
    await engine.drain()
    expect(await operator.findRedrive(redrive.id)).toMatchObject({ byState: { failed: 1 } })
    const { subscriptions: statuses } = await engine.status()
    expect(before?.since).toBeTypeOf('number')
    expect(statuses[0]?.stored?.held.oldest).toMatchObject([{ lane: 'a', since: before?.since }])
  })
})

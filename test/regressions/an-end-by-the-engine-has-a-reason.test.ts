import { createEngine, createLog, createOperator, defineProjection } from 'holdfast'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { bank, debited } from '../fixtures.ts'

it('`dlq show` of a letter that the engine resolved says that a later attempt succeeded', async () => {
  using place = createPlace()
  const store = await place.open()
  let isFixed = false
  const balances = defineProjection('balances', {
    events: bank,
    initial: () => ({ balance: 0 }),
    on: {
      Debited: ({ balance }, { data }) => {
        if (!isFixed) throw new RangeError('a bug')
        return { balance: balance - data.amount }
      },
    },
  })
  await createLog({ store, events: bank }).append('a', [debited(1), debited(2)])
  const engine = createEngine({ store, subscriptions: [balances] })
  await engine.start()
  await engine.drain()
  isFixed = true
  const operator = createOperator({ store, subscriptions: [balances], by: 'ada' })
  await operator.redrive('balances', { all: true }, { reason: 'fixed' })
  await engine.drain()
  await engine.stop()
  await store.close()
  const { stdout } = await place.call(['dlq', 'show', 'balances', '1'])
  expect(stdout).toMatch(/ended .* by engine: a later attempt succeeded/)
  const queued = await place.call(['dlq', 'show', 'balances', '2'])
  expect(queued.stdout).toMatch(/ended .* by engine: its first attempt succeeded, in order/)
  const inDocument = async (position: string) =>
    (await place.json<{ letter: { endedReason: string } }>(['dlq', 'show', 'balances', position])).letter.endedReason
  expect([await inDocument('1'), await inDocument('2')]).toEqual([
    'a later attempt succeeded',
    'its first attempt succeeded, in order',
  ])
  const list = await place.call(['dlq', 'list', 'balances', '--all'])
  expect(list.stdout).toMatch(/^ +2 +resolved .* -$/m)
  expect(list.stdout).not.toContain('waits for')
})

import { createLog } from 'holdfast'
import { expect, it } from 'vitest'
import { createPlace, type Place } from '../cli/place.ts'

// `holdfast start` said `error=***`: its log lines have the type of an error, its code and its message, without values of the event.

async function heldPlace(): Promise<Place> {
  const place = createPlace()
  const store = await place.open()
  await createLog({ store }).raw.append('a', [{ type: 'Debited', data: { amount: 471_108, note: 'geheim' } }])
  await store.close()
  return place
}

it('a lane that is held is logged with the type and the message of its error', async () => {
  using place = await heldPlace()
  const { stderr } = await place.call(['start', '--drain'])
  expect(stderr).toMatch(/class=permanent {2}errorType=RangeError {2}error=can not take \*\*\* for \*\*\*/)
  expect(stderr).not.toMatch(/471108|geheim/)
})

it('and in JSON each in a field of its own', async () => {
  using place = await heldPlace()
  const { stderr } = await place.call(['start', '--drain', '--json'])
  const lines = stderr.split('\n').filter((line) => line.startsWith('{'))
  expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
    expect.objectContaining({ errorType: 'RangeError', class: 'permanent', error: 'can not take *** for ***' }),
  )
})

// Of failures within ten seconds only the first was logged, and how many more there were was never logged.

const failing = `
import { defineEvents, defineHandler, definePolicy, defineProjection, park } from 'holdfast'
import { z } from 'zod'
export const bank = defineEvents({ Credited: z.object({ amount: z.number() }) })
const check = (amount) => {
  if (amount === 1) throw new RangeError('no limit')
  if (amount === 2) throw new TypeError('no account')
}
export const balances = defineProjection('balances', {
  events: bank,
  initial: () => ({ balance: 0 }),
  on: { Credited: (row, { data }) => (check(data.amount), { balance: data.amount }) },
})
export const mails = defineHandler('mails', {
  events: bank,
  failure: definePolicy({ permanent: park, unknown: park }),
  on: { Credited: ({ data }) => check(data.amount) },
})
`

const config = `
import { defineConfig } from 'holdfast'
import { bank, balances, mails } from './bank.ts'
const engine = { poll: '20ms', page: { events: 2 } }
export default defineConfig({ store: { sqlite: 'events.db' }, subscriptions: [balances, mails], events: bank, engine })
`

it.for(['balances', 'mails'])('each kind of failure of %s is logged, and every lane is counted', async (name) => {
  using place = createPlace({ 'bank.ts': failing, 'holdfast.config.ts': config })
  const store = await place.open()
  const log = createLog({ store })
  // Successes between them, or it would be an outage.
  for (let i = 0; i < 15; i++) await log.raw.append(`key-${i}`, [{ type: 'Credited', data: { amount: i % 4 } }])
  await store.close()
  const { stderr } = await place.call(['start', '--only', name, '--drain', '--json'])
  const lines = stderr
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    .filter((line) => line['lanes'] !== undefined)
  for (const line of lines)
    expect(line).toMatchObject({ subscription: name, status: 'parked', lane: expect.stringMatching(/^key-/) as string })
  expect(lines.slice(0, 2)).toMatchObject([
    { errorType: 'RangeError', error: 'no limit', lane: 'key-1' },
    { errorType: 'TypeError', error: 'no account', lane: 'key-2' },
  ])
  const lanesOf = (type: string) =>
    lines.reduce((sum, { errorType, lanes }) => sum + (errorType === type ? Number(lanes) : 0), 0)
  expect([lanesOf('RangeError'), lanesOf('TypeError')]).toEqual([4, 4])
})

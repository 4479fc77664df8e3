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

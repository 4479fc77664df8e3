import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createPlace, type Place } from '../../test/cli/place.ts'

const reason = ['--reason', 'prices in cents']

/** A command of one of the two releases, on the same store. */
function commandsOf(place: Place) {
  return (release: 1 | 2, ...args: string[]) =>
    place.json([...args, '--config', join(import.meta.dirname, `release-${release}.ts`), '--store', 'sqlite:shop.db'])
}

test('events and rows change their shape, and no event is lost on the way', { timeout: 90_000 }, async () => {
  using place = createPlace()
  const holdfast = commandsOf(place)
  const append = (release: 1 | 2, data: object) =>
    holdfast(release, 'events', 'append', 'berlin', 'OrderPlaced', '--data', JSON.stringify(data), ...reason)
  await holdfast(1, 'migrate')
  await append(1, { total: 12.5 })
  await append(2, { cents: 300, currency: 'USD' })

  // A process of the old release does not know the new schema: it holds the event instead of guessing.
  expect((await holdfast(1, 'start', '--drain')).code).toBe(0)
  expect(await holdfast(1, 'dlq', 'list')).toMatchObject({ letters: [{ status: 'parked', position: 2 }] })

  expect((await holdfast(2, 'projections', 'rebuild', 'revenue', ...reason)).code).toBe(0)
  expect((await holdfast(2, 'projections', 'diff', 'revenue')).code).toBe(3)
  expect((await holdfast(2, 'projections', 'switch', 'revenue', ...reason, '--yes')).code).toBe(0)

  const row = await holdfast(2, 'projections', 'get', 'revenue', 'berlin', '--reveal', ...reason)
  expect(row).toMatchObject({ version: 2, data: { EUR: 1250, USD: 300 } })
  expect(await holdfast(2, 'verify', 'revenue')).toMatchObject({ code: 0, verified: true })
})

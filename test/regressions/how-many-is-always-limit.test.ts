import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { holdSome } from './cli-stores.ts'

it('how many is --limit wherever a command lists something', async () => {
  using place = createPlace()
  await holdSome(place)
  for (const args of [
    ['audit', 'list'],
    ['events', 'tail'],
    ['events', 'history', 'a'],
    ['dlq', 'list', 'balances'],
    ['dlq', 'incidents', 'balances'],
    ['redrives', 'list'],
    ['projections', 'history', 'balances', 'a'],
  ]) {
    const document = await place.json([...args, '--limit', '1'])
    const list = Object.values(document).find((value) => Array.isArray(value))
    expect({ args, code: document.code, most: (list?.length ?? 9) <= 1 }).toEqual({ args, code: 0, most: true })
  }
  expect(await place.json(['events', 'tail', '--after', '1', '--limit', '2'])).toMatchObject({
    events: [{ position: 2 }, { position: 3 }],
  })
  expect(await place.json(['audit', 'list', '--after', '1', '--limit', '2'])).toMatchObject({
    entries: [{ number: 2 }, { number: 3 }],
  })
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { append, holdSome, why } from './cli-stores.ts'

/** Where a document has what looks like milliseconds since 1970. */
function epochsIn(value: unknown, path = ''): string[] {
  if (typeof value === 'number') return value > 1e12 && value < 1e13 ? [path] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => epochsIn(inner, `${path}.${name}`))
}

/** Where a name says that it is a time, as `heldAt` does, and the value is something else. */
function misnamedIn(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => {
    const isTime = inner === null || (typeof inner === 'string' && /^20\d\d-.*Z$/.test(inner))
    return (name === 'at' || name.endsWith('At')) && !isTime
      ? [`${path}.${name}`]
      : misnamedIn(inner, `${path}.${name}`)
  })
}

it('every time in a JSON document is ISO 8601', async () => {
  using place = createPlace()
  await holdSome(place)
  const found: string[] = []
  const check = async (...args: string[]) => {
    const document = await place.json(args)
    expect({ args, code: document.code === 0 || document.code === 3 }).toEqual({ args, code: true })
    for (const path of [...epochsIn(document), ...misnamedIn(document)]) found.push(`${args.join(' ')}: ${path}`)
    return document
  }
  await check('dlq', 'edit', 'balances', '1', '--data', '{"amount":4}', ...why)
  await check('subscriptions', 'pause', 'mails', ...why)
  await check('breakers', 'isolate', 'mails', '--new', ...why)
  await check('status')
  await check('doctor')
  await check('subscriptions', 'list')
  await check('subscriptions', 'lag')
  await check('projections', 'versions', 'balances')
  expect(await check('dlq', 'list')).toMatchObject({
    letters: [{ heldAt: expect.stringMatching(/^20\d\d-.*Z$/) }, {}, {}],
  })
  await check('dlq', 'show', 'balances', '1')
  await check('dlq', 'stats')
  await check('dlq', 'incidents')
  await check('dlq', 'redrive', 'balances', '--since', '1h', '--dry-run')
  await check('dlq', 'redrive', 'balances', '--since', '1h', '--until', '2100-01-01', ...why)
  const asked = await place.json<{ redrive: { id: string } }>([
    'dlq',
    'redrive',
    'balances',
    '--all',
    '--no-wait',
    ...why,
  ])
  found.push(...epochsIn(asked))
  await check('redrives', 'cancel', asked.redrive.id, ...why)
  await check('redrives', 'list')
  await check('redrives', 'show', asked.redrive.id)
  writeFileSync(join(place.folder, 'fixed'), '')
  await check('dlq', 'redrive', 'balances', '--all', ...why)
  await check('dlq', 'purge', 'balances', '--older-than', '0s', '--yes', ...why)
  await check('dlq', 'list', '--all')
  await check('breakers', 'list')
  await check('breakers', 'reset', 'mails', ...why)
  await check('breakers', 'list')
  await check('audit', 'list', '--limit', '100')
  expect(found).toEqual([])
  // Those of a payload are not ours to change.
  await append(place, 'n', 'Credited', { amount: 1_700_000_000_000 })
  const shown = await place.json(['events', 'show', 'n@1', '--reveal', ...why])
  expect(shown).toMatchObject({ event: { data: { amount: 1_700_000_000_000 } } })
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPlace, type Place } from '../cli/place.ts'
import { commandIn, holdSome, why } from './cli-stores.ts'

/** A store that letters were imported into, with lane `a` of `balances` held again. */
async function imported(): Promise<Place> {
  using from = createPlace()
  await holdSome(from)
  const { stdout } = await from.call(['dlq', 'export', 'balances', ...why])
  const place = createPlace()
  await place.json(['migrate'])
  const told = await place.call(['dlq', 'import', '-', ...why], { input: stdout })
  expect(told.stderr.split('\n').findLast((line) => line.startsWith('Next: '))).toBe(
    'Next: holdfast start --drain --only balances --allow-effects',
  )
  expect(await place.call(['start', '--drain', '--allow-effects'])).toMatchObject({ code: 0 })
  writeFileSync(join(place.folder, 'fixed'), '')
  return place
}

// `dlq redrive` failed with STORE_IMPORTED, and no option allowed it.
it('a redrive on an imported store runs with --allow-effects, and its refusal names the command', async () => {
  using place = await imported()
  const refused = await place.call(['dlq', 'redrive', 'balances', '1', ...why])
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('STORE_IMPORTED') as string })
  const [command = []] = commandIn(refused.stderr)
  expect(command.slice(0, 2)).toEqual(['redrives', 'show'])
  expect(await place.json(command)).toMatchObject({ code: 0, redrive: { status: 'done' } })
  const all = ['dlq', 'redrive', 'balances', '--all', '--allow-effects', ...why]
  expect(await place.json(all)).toMatchObject({ code: 0, redrive: { status: 'done' }, by: 'here' })
})

it('a configuration with allowEffects allows it too', async () => {
  using place = await imported()
  writeFileSync(
    join(place.folder, 'allowed.config.ts'),
    `import config from './holdfast.config.ts'
export default { ...config, engine: { ...config.engine, allowEffects: true } }`,
  )
  const args = ['dlq', 'redrive', 'balances', '--all', '--config', 'allowed.config.ts', ...why]
  expect(await place.json(args)).toMatchObject({ code: 0, redrive: { status: 'done' } })
})

import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { append, holdSome, why } from './cli-stores.ts'

it('an edit that changes nothing is refused and not stored', async () => {
  using place = createPlace()
  await holdSome(place)
  const edit = (...more: string[]) =>
    place.json(['dlq', 'edit', 'balances', '1', '--data', '{"note":"geheim","amount":5}', ...more, ...why])
  for (const more of [[], ['--dry-run']])
    expect(await edit(...more)).toMatchObject({
      code: 2,
      error: { message: expect.stringContaining('is already processed with this data') as string },
    })
  await using store = await place.open()
  expect(await store.letters.revisions({ subscription: 'balances', position: 1 })).toEqual([])
})

it('an import counts the edits that were not undone', async () => {
  using from = createPlace()
  await holdSome(from)
  for (const position of ['1', '3'])
    await from.json(['dlq', 'edit', 'balances', position, '--data', '{"amount":1}', ...why])
  await from.json(['dlq', 'edit', 'balances', '1', '--undo', ...why])
  const { stdout } = await from.call(['dlq', 'export', 'balances', ...why])
  using place = createPlace()
  await place.json(['migrate'])
  expect(await place.json(['dlq', 'import', '-', ...why], { input: stdout })).toMatchObject({ letters: 3, revised: 1 })
})

it.each(['0', '-3', 'x', '10001'])('--limit %s is answered with the whole range', async (limit) => {
  using place = createPlace()
  const { code, stderr } = await place.call(['dlq', 'list', 'balances', `--limit=${limit}`])
  expect(code).toBe(2)
  expect(stderr).toContain('Give a whole number from 1 to 10000.')
})

it('status names one held lane and the number of the others', async () => {
  using place = createPlace()
  await holdSome(place)
  expect((await place.call(['status'])).stdout).toMatch(/held balances: a since .*, parked; and 1 more\n/)
  await append(place, 'd', 'Debited', { amount: 5 })
  await place.call(['start', '--drain'])
  expect((await place.call(['status'])).stdout).toMatch(/held balances: a since .*, parked; and 2 more\n/)
})

import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { append, describeCli, why } from './cli-stores.ts'

describeCli('holdfast start', (open) => {
  it.each([
    [
      ['--only', 'balances'],
      [1, undefined],
    ],
    [
      ['--except', 'balances'],
      [undefined, 1],
    ],
    [
      ['--only', 'balances', 'mails'],
      [1, 1],
    ],
  ])('%j runs those and no others', async (flags, [balances, mails]) => {
    using place = open()
    await place.json(['migrate', '--no-subscriptions'])
    await append(place, 'a', 'Credited', { amount: 1 })
    expect(await place.call(['start', '--drain', ...flags])).toMatchObject({ code: 0 })
    const { subscriptions } = await place.json<{ subscriptions: { name: string; counts?: { applied: number } }[] }>([
      'status',
    ])
    const applied = (name: string) => subscriptions.find((each) => each.name === name)?.counts?.applied
    expect([applied('balances'), applied('mails')]).toEqual([balances, mails])
  })

  it('runs an imported store only with --allow-effects', async () => {
    using place = open()
    await place.json(['migrate'])
    await append(place, 'a', 'Debited', { amount: 5 })
    await place.call(['start', '--drain'])
    await place.json(['dlq', 'export', 'balances', '--history', '--output', 'letters.ndjson', ...why])
    using home = open()
    await home.json(['migrate'])
    await home.json(['dlq', 'import', `${place.folder}/letters.ndjson`, ...why])
    expect(await home.json(['start', '--drain'])).toMatchObject({
      code: 1,
      error: { code: 'STORE_IMPORTED', hint: expect.stringContaining('--allow-effects') },
    })
    expect(await home.json(['dlq', 'list'])).toMatchObject({ letters: [] })
    // The same command again, or what was left out would run too.
    const refused = await home.call(['start', '--drain', '--only', 'balances'])
    expect(refused.stderr).toMatch(/Next: .*: holdfast start --drain --only balances --allow-effects\n/)
    expect(await home.json(['start', '--drain', '--only', 'balances', '--allow-effects'])).toMatchObject({ code: 0 })
    expect(await home.json(['dlq', 'list'])).toMatchObject({ letters: [{ lane: 'a', status: 'parked' }] })
  })
})

it('a subscription that the configuration does not have is refused, and so is nothing at all', async () => {
  using place = createPlace()
  for (const flags of [
    ['--only', 'balance'],
    ['--except', 'balance'],
    ['--only', 'mails', 'nothing'],
  ])
    expect(await place.json(['start', ...flags])).toMatchObject({ code: 2, error: { code: 'NOT_FOUND' } })
  expect(await place.json(['start', '--except', 'mails', 'balances'])).toMatchObject({ code: 2 })
  expect(await place.json(['start', '--except', 'mails', '--only', 'balances'])).toMatchObject({ code: 2 })
})

import { expect, it } from 'vitest'
import { describeCli, holdSome, why } from './cli-stores.ts'

describeCli('--key', (open) => {
  it('--key names a lane, wherever --lane does', async () => {
    using place = open()
    await holdSome(place)
    expect(await place.json(['dlq', 'list', 'balances', '--key', 'b'])).toMatchObject({ letters: [{ lane: 'b' }] })
    expect(await place.json(['dlq', 'redrive', 'balances', '--key', 'a', '--dry-run'])).toMatchObject({
      lanes: 1,
      tried: [{ lane: 'a' }],
    })
    expect(await place.json(['dlq', 'list', '--key', 'b', '--lane', 'b'])).toMatchObject({ code: 2 })
    const { stdout } = await place.call(['dlq', 'export', 'balances', '--key', 'b', ...why])
    expect(stdout.match(/"kind":"letter"/g)).toHaveLength(1)
  })
})

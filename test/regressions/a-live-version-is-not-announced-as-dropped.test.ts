import { expect, it } from 'vitest'
import { describeCli, holdSome, why } from './cli-stores.ts'

describeCli('projections drop', (open) => {
  it('drop of the live version is refused before anything is announced', async () => {
    using place = open()
    await holdSome(place)
    const drop = ['projections', 'drop', 'balances', '1', '--yes', ...why]
    const { code, stdout, stderr } = await place.call(drop)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^REBUILD_LIVE: Version 1 of balances is live\.\n/)
    expect(await place.json([...drop, '--dry-run'])).toMatchObject({ code: 1, error: { code: 'REBUILD_LIVE' } })
  })
})

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { append, describeCli, why } from './cli-stores.ts'

describeCli('dlq incidents', (open) => {
  it('dlq incidents --open leaves out what is resolved, before it counts to the limit', async () => {
    using place = open()
    const bank = join(place.folder, 'bank.ts')
    const other = "if (data.note === 'other') throw new TypeError('another bug')\n"
    const debited = 'Debited: (row, { data }) => {\n'
    writeFileSync(bank, readFileSync(bank, 'utf8').replace(debited, `${debited}${other}`))
    await place.json(['migrate'])
    await append(place, 'x', 'Debited', { amount: 1, note: 'other' })
    await place.call(['start', '--drain'])
    await append(place, 'y', 'Debited', { amount: 1 })
    await place.call(['start', '--drain'])
    const incidents = async (...flags: string[]) => {
      const found = await place.json<{ incidents: { state: string; errorType: string }[] }>([
        'dlq',
        'incidents',
        'balances',
        ...flags,
      ])
      return found.incidents.map(({ state, errorType }) => `${state} ${errorType}`)
    }
    expect(await incidents('--open')).toEqual(['open RangeError', 'open TypeError'])
    await place.json(['dlq', 'discard', 'balances', '--key', 'y', '--yes', ...why])
    expect(await incidents()).toEqual(['resolved RangeError', 'open TypeError'])
    expect(await incidents('--open', '--limit', '1')).toEqual(['open TypeError'])
  })
})

import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'

// `--store "$STORE"` with a variable that is not set used the configured store.
it.each(['--store', '--config', '--schema'])('%s without a value is refused', async (option) => {
  using place = createPlace()
  await place.json(['migrate'])
  for (const value of ['', ' '])
    expect(await place.json(['status', option, value])).toMatchObject({
      code: 2,
      error: { code: 'USAGE', message: `${option} is empty.` },
    })
})

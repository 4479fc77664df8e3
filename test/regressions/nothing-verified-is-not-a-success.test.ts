import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'

// It printed nothing and exited with 0: a script took that for a verified store.
it('verify without a configuration is an error that names the missing file', async () => {
  using place = createPlace({ 'holdfast.config.ts': '' })
  await (await place.open()).close()
  expect(await place.call(['verify', '--store', 'events.db'])).toMatchObject({
    code: 2,
    stdout: '',
    stderr: expect.stringMatching(
      /^CONFIG_MISSING: .*holdfast\.config\.ts does not exist.*\nNext: .*--config/,
    ) as string,
  })
})

it('verify with a configuration that declares nothing is an error', async () => {
  using place = createPlace({ 'holdfast.config.ts': `export default { store: { sqlite: 'events.db' } }` })
  await place.json(['migrate'])
  expect(await place.json(['verify'])).toMatchObject({
    code: 2,
    error: { code: 'CONFIG_MISSING', message: expect.stringContaining('declares no subscriptions') as string },
  })
})

it('verify that skipped everything is a finding', async () => {
  using place = createPlace()
  await (await place.open()).close()
  expect(await place.json(['verify'])).toMatchObject({ code: 3, verified: false, subscriptions: [] })
  expect((await place.call(['verify'])).stderr).toBe('Nothing was verified.\n')
})

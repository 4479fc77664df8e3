import { expect, it } from 'vitest'
import { describeCli, why } from './cli-stores.ts'

describeCli('events show', (open) => {
  it('events show takes the id of an event', async () => {
    using place = open()
    await place.json(['migrate'])
    const by = (id: string) => ['events', 'append', 'a', 'Credited', '--id', id, '--data', '{"amount":1}', ...why]
    for (const id of ['0198c0de-0000-7000-8000-000000000001', '900', 'like@7']) await place.json(by(id))
    for (const [name, position] of [
      ['0198c0de-0000-7000-8000-000000000001', 1],
      ['2', 2],
      ['a@3', 3],
      // An id that looks like a position or a version is found where there is no such position or version.
      ['900', 2],
      ['like@7', 3],
    ] as const)
      expect({ name, ...(await place.json(['events', 'show', name])) }).toMatchObject({ code: 0, event: { position } })
    expect(await place.json(['events', 'show', 'no-such-id'])).toMatchObject({
      code: 2,
      error: { code: 'NOT_FOUND', message: expect.stringContaining('no-such-id') },
    })
  })
})

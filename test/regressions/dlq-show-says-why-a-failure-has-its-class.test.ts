import { createEngine, createLog, defineHandler, definePolicy, failure, park } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, credited } from '../fixtures.ts'
import { createPlace } from '../cli/place.ts'

// The class of a failure decides what becomes of its event: `dlq show` has the class, the rule that gave it, and what in the error it went by.

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

it('the class, the rule and its evidence are shown', async () => {
  using place = createPlace()
  const store = await place.open()
  await createLog({ store, events: bank }).append('a', [credited(5)])
  await createLog({ store, events: bank }).append('b', [credited(6)])
  await createLog({ store, events: bank }).append('c', [credited(7)])
  const mails = defineHandler('mails', {
    events: bank,
    failure: definePolicy({ permanent: park, unknown: park }),
    on: {
      Credited: ({ key }) => {
        if (key === 'c') throw failure.permanent('no account')
        throw key === 'a' ? Object.assign(new Error('no such box'), { status: 404 }) : new Error('odd')
      },
    },
  })
  const engine = createEngine({ store, subscriptions: [mails], logger: silent })
  await engine.start()
  await engine.drain()
  await engine.stop()
  await store.close()

  expect((await place.call(['dlq', 'show', 'mails', '1'])).stdout).toContain(
    '  failure  Error: no such box\n  class    permanent, by the rule http: HTTP 404\n  incident ',
  )
  expect((await place.call(['dlq', 'show', 'mails', '2'])).stdout).toContain(
    'class    unknown, by the rule unrecognised\n',
  )
  expect((await place.call(['dlq', 'show', 'mails', '3'])).stdout).toContain(
    'class    permanent, set explicitly by the code\n',
  )
  expect(await place.json(['dlq', 'list', 'mails'])).toMatchObject({
    letters: [
      { failure: { class: 'permanent', rule: 'http', evidence: 'HTTP 404' } },
      { failure: { evidence: null } },
      {},
    ],
  })
})

import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { append, holdSome, why } from './cli-stores.ts'

it('doctor counts problems and warnings apart', async () => {
  using place = createPlace()
  await holdSome(place)
  const { stderr } = await place.call(['doctor'])
  // Two subscriptions without an owner, and what one of them holds.
  expect(stderr).toBe('2 problems and 1 warning found.\n')
})

it('incidents --open without any says which kind there is not', async () => {
  using place = createPlace()
  await holdSome(place)
  await place.json(['dlq', 'discard', 'balances', '--all', '--whole', '--yes', ...why])
  expect(await place.call(['dlq', 'incidents', '--open'])).toMatchObject({ code: 0, stderr: 'No open incidents.\n' })
  expect((await place.call(['dlq', 'incidents'])).stderr).not.toContain('No ')
})

it('an undo without an edit, and a breaker that is not stored, are named as the command line names them', async () => {
  using place = createPlace()
  await holdSome(place)
  const undo = await place.call(['dlq', 'edit', 'balances', '1', '--undo', ...why])
  expect(undo.stderr).toMatch(/^REVISION_NONE: .* has no edit to undo\./)
  await append(place, 'z', 'Credited', { amount: 1 })
  const isolate = await place.call(['breakers', 'isolate', 'nowhere', ...why])
  expect(isolate.stderr).toContain("to isolate it: holdfast breakers isolate nowhere --reason 'a test' --new\n")
  expect(isolate.stderr).not.toContain('new: true')
  const reset = await place.call(['breakers', 'reset', 'nowhere', ...why])
  expect(reset.stderr).toMatch(/Next: List the breakers: holdfast breakers list\n/)
})

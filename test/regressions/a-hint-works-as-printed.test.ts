import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { commandIn, holdSome, why } from './cli-stores.ts'

it('a hint that values are private names a command that shows them', async () => {
  using place = createPlace()
  await holdSome(place)
  for (const args of [
    ['dlq', 'show', 'balances', '1'],
    ['events', 'show', '1'],
    ['events', 'show', 'a@1'],
    ['projections', 'get', 'balances', 'c'],
    ['projections', 'get', 'balances', 'c', '--at-version', '1'],
  ]) {
    const { stderr } = await place.call(args)
    const [command = []] = commandIn(stderr.split('\n').find((line) => line.includes('private')) ?? '')
    expect(await place.call(command)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/"amount":|"balance":/),
    })
  }
})

it('a hint to act brings a reason, so that it works where no question can be asked', async () => {
  using place = createPlace()
  await holdSome(place)
  const paused = await place.call(['subscriptions', 'pause', 'balances', ...why])
  const [resume = []] = commandIn(paused.stderr)
  expect(await place.call(resume)).toMatchObject({ code: 0 })
  const isolated = await place.call(['breakers', 'isolate', 'a b', '--new', ...why])
  const [reset = []] = commandIn(isolated.stderr)
  expect(await place.call(reset)).toMatchObject({ code: 0 })
  await place.call(['subscriptions', 'pause', 'balances', ...why])
  await place.call(['breakers', 'isolate', 'a b', ...why])
  const { stdout } = await place.call(['doctor'])
  const acts = commandIn(stdout).filter(([, act]) => act === 'resume' || act === 'reset')
  expect(acts).toHaveLength(2)
  for (const act of acts) expect({ act, ...(await place.call(act)) }).toMatchObject({ code: 0 })
})

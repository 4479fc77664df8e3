import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { commandIn, holdSome, why } from './cli-stores.ts'

it('a drain of a paused subscription says how to resume it', async () => {
  using place = createPlace()
  await holdSome(place)
  await place.json(['subscriptions', 'pause', 'balances', ...why])
  const refused = await place.call(['start', '--drain'])
  expect(refused).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /SUBSCRIPTION_PAUSED: .*\nNext: Resume it: holdfast subscriptions resume balances --reason "<why>"\n/,
    ) as string,
  })
  await place.json(['subscriptions', 'pause', 'mails', ...why])
  const both = await place.call(['start', '--drain'])
  expect(both.stderr).toMatch(
    /balances can't be drained: .*\. mails can't be drained: .*\.\nNext: Resume it: .* balances /,
  )
  expect(await place.call(commandIn(refused.stderr).at(-1) ?? [])).toMatchObject({ code: 0 })
})

it('a redrive that does not exist is refused with the list of those that do', async () => {
  using place = createPlace()
  await holdSome(place)
  const { stderr } = await place.call(['redrives', 'cancel', 'nope', ...why])
  expect(stderr).toMatch(/Next: Find it: holdfast redrives list\n/)
})

it('doctor suggests no command that needs a configuration where there is none', async () => {
  using place = createPlace()
  await holdSome(place)
  await place.call(['dlq', 'redrive', 'balances', '--all', '--no-wait', ...why])
  rmSync(join(place.folder, 'holdfast.config.ts'))
  const { findings } = await place.json<{ findings: { check: string; next?: string }[] }>([
    'doctor',
    '--store',
    'events.db',
  ])
  const nexts = findings.flatMap(({ next }) => next ?? [])
  expect(nexts.filter((next) => next.startsWith('Start the program that runs it'))).toHaveLength(3)
  for (const args of nexts.flatMap((next) => commandIn(next)))
    expect({ args, ...(await place.call(args)) }).toMatchObject({ args, code: 0 })
})

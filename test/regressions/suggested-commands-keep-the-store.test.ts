import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { commandIn, holdSome, why } from './cli-stores.ts'

/** A folder without a configuration, in which a program left its store. */
async function left() {
  const place = createPlace()
  await holdSome(place)
  rmSync(join(place.folder, 'holdfast.config.ts'))
  return place
}

// `status --store quickstart.db` said `Next: holdfast dlq list balances`, which failed with CONFIG_MISSING.
it('a suggested command has the options that name the store', async () => {
  using place = await left()
  let args: readonly string[] = ['status', '--store', 'events.db']
  for (const next of [
    ['dlq', 'list', 'balances'],
    ['dlq', 'show', 'balances', '1'],
  ]) {
    const { stdout, stderr } = await place.call(args)
    const line = `${stdout}${stderr}`.split('\n').find((each) => each.includes('Next: '))
    ;[args = []] = commandIn(line ?? '')
    expect(args).toEqual(['--store', 'events.db', ...next])
    expect(await place.call(args)).toMatchObject({ code: 0 })
  }
  const { findings } = await place.json<{ findings: { next?: string }[] }>(['doctor', '--store', 'events.db'])
  expect(findings.map(({ next }) => next)).toContain('holdfast --store events.db dlq incidents balances')
})

it('a suggested command has the configuration too, and a value that a shell would split is quoted', async () => {
  using place = createPlace({ 'my config.ts': `export { default } from './holdfast.config.ts'` })
  await holdSome(place)
  const { stderr } = await place.call(['subscriptions', 'pause', 'balances', '--config', 'my config.ts', ...why])
  expect(stderr).toContain(`Next: holdfast --config 'my config.ts' subscriptions resume balances --reason "<why>"`)
})

it('a password is not repeated', async () => {
  using place = await left()
  const { stderr } = await place.call(['dlq', 'show', 'balances', 'x', '--store', 'postgres://ada:hunter2@host/x'])
  expect(stderr).toMatch(/Next: .*holdfast --store \S*postgres:\/\/\S+ dlq list/)
  expect(stderr).not.toContain('hunter2')
})

it('a misspelled command after an option is answered with its own group', async () => {
  using place = await left()
  const { code, stderr } = await place.call(['--store', 'events.db', 'dlq', 'lst'])
  expect(code).toBe(2)
  expect(stderr).toContain('holdfast dlq --help')
})

it('what runs the code of a subscription names the missing file', async () => {
  using place = await left()
  for (const args of [
    ['dlq', 'redrive', 'balances', '1', ...why],
    ['dlq', 'discard', 'balances', '1', '--yes', ...why],
    ['dlq', 'edit', 'balances', '1', '--data', '{}', ...why],
  ])
    expect(await place.json([...args, '--store', 'events.db'])).toMatchObject({
      code: 2,
      error: {
        code: 'CONFIG_MISSING',
        message: expect.stringContaining(`${join(place.folder, 'holdfast.config.ts')} does not exist`) as string,
      },
    })
})

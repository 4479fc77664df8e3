import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPlace, type Place } from '../cli/place.ts'
import { commandIn, describeCli, holdSome, why } from './cli-stores.ts'

/** The whole text of every `Next:` line. */
const nextsIn = ({ stdout, stderr }: { stdout: string; stderr: string }) =>
  `${stdout}${stderr}`.split('\n').flatMap((line) => /^ *Next: (.*)$/.exec(line)?.[1] ?? [])

/** Runs each suggested command as a shell would, and checks that it is not refused. */
async function paste(place: Place, said: { stdout: string; stderr: string }): Promise<string[]> {
  const nexts = nextsIn(said)
  for (const next of nexts) {
    expect(next).toMatch(/^holdfast [^,;]*$/)
    // A shell reads <breaker> as a redirection.
    expect(next.replaceAll(/"[^"]*"|'[^']*'/g, '')).not.toMatch(/[<>]/)
    const [args = []] = commandIn(next)
    const { code, stderr } = await place.call(args)
    expect({ next, stderr, isAccepted: code === 0 || code === 3 }).toMatchObject({ isAccepted: true })
  }
  return nexts
}

describeCli('a next step', (open) => {
  it('of a letter that is not the head of its lane is a command', async () => {
    using place = open()
    await holdSome(place)
    const shown = await place.call(['dlq', 'show', 'balances', '2'])
    expect(shown.stderr).toContain('Its lane is held at position 1.')
    expect(await paste(place, shown)).toEqual(['holdfast dlq show balances 1'])
    const edited = await place.call(['dlq', 'edit', 'balances', '2', '--data', '{"amount":8}', ...why])
    expect(await paste(place, edited)).toEqual(['holdfast dlq redrive balances --lane a --dry-run'])
  })

  it('of a dry run is the same command for exactly what was shown', async () => {
    using place = open()
    await holdSome(place)
    const fails = await place.call(['dlq', 'redrive', 'balances', '--key', 'a', '--dry-run'])
    expect(await paste(place, fails)).toEqual(['holdfast dlq show balances 1'])
    writeFileSync(join(place.folder, 'fixed'), '')
    const args = ['dlq', 'redrive', 'balances', '--key=a', '--dry-run', '--limit', '5', '--reveal', ...why]
    const [next = ''] = await paste(place, await place.call(args))
    expect(next).toMatch(/^holdfast dlq redrive balances --key=a --expect [0-9a-f]{12} --reason "<why>"$/)
    expect(await place.json(['dlq', 'list', 'balances'])).toMatchObject({ letters: [{ lane: 'b' }] })
    const whole = await place.call(['dlq', 'discard', 'balances', '--lane', 'b', '--whole', '--yes', '--dry-run'])
    const [discard = ''] = await paste(place, whole)
    expect(discard).toMatch(/^holdfast dlq discard balances --lane b --yes --whole 3 --expect \w+ --reason "<why>"$/)
    const nothing = await place.call(['dlq', 'purge', 'balances', '--dry-run'])
    expect(nextsIn(nothing)).toEqual([])
    const purge = ['dlq', 'purge', 'balances', '--older-than', '0s', '--dry-run', '-y']
    expect(await paste(place, await place.call(purge))).toHaveLength(1)
    const reset = ['projections', 'reset', 'balances', '--dry-run', '--yes']
    expect(await paste(place, await place.call(reset))).toHaveLength(1)
  })

  it('of a new version is one command at a time', async () => {
    using place = open()
    await holdSome(place)
    const path = join(place.folder, 'bank.ts')
    writeFileSync(path, readFileSync(path, 'utf8').replace('initial: () =>', 'version: 2,\n  initial: () =>'))
    const run = async (...args: string[]) => {
      const said = await place.run(args)
      for (const next of nextsIn(said)) expect(next).toMatch(/^holdfast [^,;<>]*( --reason "<why>")?$/)
      return nextsIn(said)
    }
    expect(await run('projections', 'versions', 'balances')).toEqual([
      'holdfast projections rebuild balances --reason "<why>"',
    ])
    expect(await run('projections', 'rebuild', 'balances', ...why)).toEqual(['holdfast projections diff balances'])
    expect(await run('projections', 'switch', 'balances', '--yes', ...why)).toEqual(['holdfast verify balances'])
  })
})

it('a usage error has the usage in its message, and a command as the next step', async () => {
  using place = createPlace()
  await holdSome(place)
  for (const [args, message, next] of [
    [['dlq'], 'A command is missing. Commands: list, ', 'holdfast dlq --help'],
    [['dlq', 'show'], 'Usage: holdfast dlq show [options] <subscription> <position>', 'holdfast dlq show --help'],
    [
      ['dlq', 'lst'],
      "unknown command 'lst'. Did you mean one of list, ls? Usage: holdfast dlq ",
      'holdfast dlq --help',
    ],
    [['status', '--wrong'], "unknown option '--wrong'. Usage: holdfast status [options]", 'holdfast status --help'],
    [['dlq', 'list', 'nothing'], 'The store has no subscription "nothing".', 'holdfast subscriptions list'],
    [['dlq', 'show', 'balances', 'x'], '"x" is not a valid position.', 'holdfast dlq list'],
  ] as const) {
    const said = await place.call(args)
    expect(said).toMatchObject({ code: 2, stderr: expect.stringContaining(message) })
    expect(await paste(place, said)).toEqual([next])
  }
})

it('a dry run of a pause or an isolation suggests nothing that needs it done', async () => {
  using place = createPlace()
  await holdSome(place)
  for (const args of [
    ['subscriptions', 'pause', 'balances'],
    ['breakers', 'isolate', 'mails', '--new'],
  ])
    expect(nextsIn(await place.call([...args, '--dry-run', ...why]))).toEqual([])
})

it('the next step of an import names what can be run without side effects', async () => {
  using place = createPlace()
  await holdSome(place)
  await place.call(['dlq', 'export', 'balances', '--output', 'held.ndjson', ...why])
  await place.call(['migrate', '--store', 'home.db'])
  const imported = await place.call(['dlq', 'import', 'held.ndjson', '--store', 'home.db', ...why])
  expect(await paste(place, imported)).toEqual([
    'holdfast --store home.db start --drain --only balances --allow-effects',
  ])
})

it('a suggested redrive does not repeat a password', async () => {
  using place = createPlace()
  await holdSome(place)
  writeFileSync(join(place.folder, 'fixed'), '')
  const said = await place.call(['--as', 'x://me:hunter2@db', 'dlq', 'redrive', 'balances', '--all', '--dry-run'])
  expect(said.stderr).not.toContain('hunter2')
  expect(nextsIn(said)).toEqual([expect.stringMatching(/^holdfast --as 'x:.*' dlq redrive balances --all --expect /)])
})

it('the findings of doctor suggest commands that are accepted', async () => {
  using place = createPlace()
  await holdSome(place)
  await place.call(['breakers', 'isolate', 'mails', '--new', ...why])
  await place.call(['dlq', 'redrive', 'balances', '--all', '--no-wait', ...why])
  const said = await place.call(['doctor'])
  const nexts = nextsIn(said).filter((next) => next !== 'holdfast start')
  expect(nexts).toHaveLength(3)
  await paste(place, { stdout: nexts.map((next) => `Next: ${next}`).join('\n'), stderr: '' })
})

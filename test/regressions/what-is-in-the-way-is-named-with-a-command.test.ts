import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { createPlace, type Place, type Told } from '../cli/place.ts'
import { append, commandIn, describeCli, holdSome, why } from './cli-stores.ts'

const nextOf = ({ stderr }: Told) => /^Next: (.*)$/m.exec(stderr)?.[1] ?? ''

/** Every command in the text is accepted as it is printed. */
async function paste(place: Place, text: string): Promise<void> {
  for (const part of text.split(', or: ')) {
    const [args = []] = commandIn(part)
    const { code, stderr } = await place.call(args)
    expect({ part, stderr, isAccepted: code === 0 || code === 3 }).toMatchObject({ isAccepted: true })
  }
}

describeCli('what is in the way', (open) => {
  it('is a redrive with an id', async () => {
    using place = open()
    await holdSome(place)
    await place.call(['dlq', 'redrive', 'balances', '--lane', 'b', '--no-wait', ...why])
    const first = await place.json<{ redrive: { id: string } }>([
      'dlq',
      'redrive',
      'balances',
      '--lane',
      'a',
      '--no-wait',
      ...why,
    ])
    const { id } = first.redrive
    const ways = `holdfast redrives show ${id}, or: holdfast redrives cancel ${id} --reason "<why>"`
    const redriven = await place.call(['dlq', 'redrive', 'balances', '--lane', 'a', ...why])
    const taken = `REDRIVE_BUSY: The selected lane of balances is in another redrive: ${id}.`
    expect(redriven).toMatchObject({ code: 1, stderr: expect.stringContaining(taken) })
    expect(nextOf(redriven)).toBe(ways)
    const edited = await place.call(['dlq', 'edit', 'balances', '2', '--data', '{"amount":8}', ...why])
    expect(edited.stderr).toContain(`LETTER_BUSY: The letter at position 2 of balances is in the redrive ${id}.`)
    expect(nextOf(edited)).toBe(ways)
    const shown = await place.call(['dlq', 'show', 'balances', '1'])
    expect(nextOf(shown)).toBe(`holdfast redrives show ${id}`)
    await paste(place, ways)
    await place.call(['dlq', 'redrive', 'balances', '--lane', 'a', '--no-wait', ...why])
    const all = await place.call(['dlq', 'redrive', 'balances', '--all', ...why])
    expect(all.stderr).toMatch(/All 2 selected lanes of balances are in other redrives, such as \S+\./)
  })

  it('is that no lane is held, or none with such a head', async () => {
    using place = open()
    await holdSome(place)
    const none = await place.call(['dlq', 'skip', 'balances', '--all', '--yes', ...why])
    expect(none.stderr).toContain('It has 2 held lanes: 2 parked, 0 retrying, 0 waiting.')
    expect(nextOf(none)).toBe('holdfast dlq list balances')
    const other = await place.call(['dlq', 'redrive', 'balances', '--lane', 'c', ...why])
    expect(nextOf(other)).toBe('holdfast dlq list balances')
    const parked = await place.call(['dlq', 'skip', 'balances', '--lane', 'a', '--yes', ...why])
    await paste(place, nextOf(parked))
    writeFileSync(join(place.folder, 'fixed'), '')
    expect(await place.call(['dlq', 'redrive', 'balances', '--all', ...why])).toMatchObject({ code: 0 })
    const again = await place.call(['dlq', 'redrive', 'balances', '--all', ...why])
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('No lane of balances is held.') })
    expect(nextOf(again)).toBe('holdfast dlq list balances --all')
    await paste(place, nextOf(again))
  })

  it('is a page that ends: the list says that there are more, and how to see them', async () => {
    using place = open()
    await holdSome(place)
    for (const amount of [1, 2]) await append(place, 'a', 'Credited', { amount })
    await place.call(['start', '--drain'])
    const page = async (args: readonly string[]) => {
      const { stdout, stderr } = await place.call(args)
      const positions = [...stdout.matchAll(/^ +(\d+) /gm)].map(([, position]) => Number(position))
      const more = stderr.split('\n').find((line) => line.includes('more letters')) ?? ''
      return { positions, more: commandIn(more)[0] }
    }
    const first = await page(['dlq', 'list', 'balances', '--lane', 'a', '--limit', '3'])
    expect(first).toEqual({ positions: [1, 2, 5], more: expect.arrayContaining(['--lane', '--limit', '--after']) })
    expect(await page(first.more ?? [])).toEqual({ positions: [6], more: undefined })
    const every = await place.call(['dlq', 'list', '--after=1', '--limit', '1'])
    expect(every.stderr).toContain(
      'balances has more letters. To see them: holdfast dlq list --limit 1 balances --after 2',
    )
    expect(await place.json(['dlq', 'list', 'balances', '--limit', '4'])).toMatchObject({ isWhole: false })
    expect(await place.json(['dlq', 'list', 'balances', '--limit', '5'])).toMatchObject({ isWhole: true })
    expect(await place.json(['dlq', 'incidents', 'balances'])).toMatchObject({ isWhole: true })
  })
})

const scene = `
import { defineConfig, defineHandler, definePolicy, defineProjection, defineSubscription, failure, fixed, retry } from 'holdfast'
import { bank } from './bank.ts'
const recorded = (position, version) => ({
  position, id: 'e' + version, type: 'Credited', key: "it's b", version, schemaVersion: 1,
  time: '2026-01-01T00:00:00.000Z', body: '{"amount":1}',
})
const records = [recorded(1, 1), recorded(2, 3), recorded(3, 4)]
const source = {
  name: 'gaps',
  versions: 'unordered',
  read: async (after) => ({ events: records.slice(after), through: records.length }),
  head: async () => records.length,
  lag: async (after) => ({ events: records.length - after, since: undefined }),
  onAppend: () => () => undefined,
}
const ordered = defineProjection('ordered', {
  events: bank,
  initial: () => ({ balance: 0 }),
  on: { Credited: (row, { data }) => ({ balance: row.balance + data.amount }) },
})
const calls = defineHandler('calls', {
  events: bank,
  breaker: { opens: { failures: 100 }, cooldown: '10m', key: () => 'x' },
  on: { Credited: () => undefined },
})
const retried = defineHandler('retried', {
  events: bank,
  failure: definePolicy({ transient: retry({ attempts: 5, backoff: fixed('1h') }), outage: false }),
  on: { Credited: () => { throw failure.transient('not yet') } },
})
export default defineConfig({
  store: { sqlite: 'events.db' },
  subscriptions: [defineSubscription(ordered, { source }), calls, retried],
  events: bank,
})
`

it('a letter that waits for a version, a breaker or its next attempt has a next step that is accepted', async () => {
  using place = createPlace({ 'holdfast.config.ts': scene })
  await place.json(['migrate'])
  await append(place, 'a', 'Credited', { amount: 1 })
  await place.call(['breakers', 'isolate', 'calls:x', '--new', ...why])
  const started = place.spawn('start')
  try {
    await vi.waitFor(
      async () => {
        const { letters } = await place.json<{ letters: { subscription: string; status: string }[] }>(['dlq', 'list'])
        expect(new Set(letters.map(({ subscription, status }) => `${subscription} ${status}`))).toEqual(
          new Set(['ordered waiting', 'ordered queued', 'calls waiting', 'retried retrying']),
        )
      },
      { timeout: 20_000, interval: 200 },
    )
  } finally {
    started.process.kill('SIGTERM')
    await started.ended
  }
  const skip = `holdfast dlq skip ordered --lane 'it'\\''s b' --dry-run`
  const edit = (name: string, position: string) =>
    place.call(['dlq', 'edit', name, position, '--data', '{"amount":2}', ...why])

  const waiting = await place.call(['dlq', 'show', 'ordered', '2'])
  expect({ stderr: waiting.stderr, next: nextOf(waiting) }).toMatchObject({ next: skip })
  expect(await place.call(['dlq', 'skip', 'ordered', '--lane', "it's b", '--dry-run'])).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('1 lane would continue.') as string,
  })
  expect(nextOf(await place.call(['dlq', 'show', 'ordered', '3']))).toBe('holdfast dlq show ordered 2')
  const inVersion = await edit('ordered', '2')
  expect(inVersion.stderr).toContain("can't be edited while its lane waits for version 2.")
  await paste(place, nextOf(inVersion))
  await paste(place, nextOf(await place.call(['dlq', 'redrive', 'ordered', '2', ...why])))

  const open = await place.call(['dlq', 'show', 'calls', '1'])
  expect(nextOf(open)).toBe('holdfast breakers list --open')
  await paste(place, nextOf(open))
  expect(nextOf(await edit('calls', '1'))).toBe('holdfast breakers list --open')
  await paste(place, nextOf(await place.call(['dlq', 'redrive', 'calls', '1', ...why])))

  const tried = await place.call(['dlq', 'show', 'retried', '1'])
  expect(nextOf(tried)).toBe('holdfast dlq redrive retried --letter 1 --dry-run')
  await paste(place, nextOf(tried))
  const inAttempt = await edit('retried', '1')
  expect(inAttempt.stderr).toContain('LETTER_BUSY: The letter at position 1 of retried is about to be tried.')
  await paste(place, nextOf(inAttempt))
})

it('the configuration: the hint is the whole command, without a payload', async () => {
  using place = createPlace({ 'holdfast.config.ts': '' })
  const hints = async (...args: string[]) => nextOf(await place.call(args))
  expect(await hints('dlq', 'show', 'balances', '2')).toMatch(/^holdfast dlq show balances 2 --store events\.db, /)
  expect(await hints('verify', 'balances', '--as', 'ada')).toMatch(/or: holdfast verify balances --as ada --config /)
  const appended = await hints('events', 'append', 'a', 'Credited', '--raw', '--data', '{"amount":5}', ...why)
  expect(appended).toContain(`--data '…'`)
  expect(appended).not.toContain('amount')
})

it('a confirmation that cannot be asked for: the hint is the dry run of the same command', async () => {
  using place = createPlace()
  await holdSome(place)
  const said = await place.call(['--as', 'ada', 'dlq', 'discard', 'balances', '--lane', 'a', '--whole', ...why])
  expect(said).toMatchObject({ code: 2, stderr: expect.stringContaining('NOT_CONFIRMED') as string })
  expect(nextOf(said)).toMatch(/: holdfast --as ada dlq discard balances --lane a --whole --dry-run$/)
  const dry = await place.call(['dlq', 'discard', 'balances', '--lane', 'a', '--dry-run'])
  expect(dry.stdout).toContain('1 Debited  would be discarded')
  expect(dry.stdout).toContain('1 lane; letters tried: 1 pass, 0 fail, 0 behind, 0 unknown. Nothing was kept.')
  expect(dry.stdout).toContain('1 letter would be discarded.')
  const stale = await place.call([
    'dlq',
    'discard',
    'balances',
    '--lane',
    'a',
    '--expect',
    '0123456789ab',
    '--yes',
    ...why,
  ])
  expect(stale).toMatchObject({ code: 1, stderr: expect.stringContaining('SELECTION_CHANGED') as string })
  expect(nextOf(stale)).toBe('Check the new selection: holdfast dlq discard balances --lane a --dry-run')
})

import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { describeNewest } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'
import { createPlace, type Place, type RunOptions, type Told } from './place.ts'

vi.setConfig({ testTimeout: 90_000 })

// A night: a bug ships, lanes are held, and an operator sees why, tries the fix without risk, lets them go in order, and proves that
// nothing was lost. Each command for a person and for a program.

describe('SQLite: a night', () => {
  it('ends well', async () => {
    expect(await night({})).toBe('told')
  })
})

describeNewest('a night', (server) => {
  const schemas = useSchemas(server)
  it('ends well', async () => {
    const env = { HOLDFAST_STORE: schemas.url, HOLDFAST_SCHEMA: schemas.newSchema() }
    expect(await night(env)).toBe('told')
  })
})

const secrets = /471108154|471208154|geheim/
const why = (reason: string) => ['--reason', reason]

async function night(env: Record<string, string>): Promise<'told'> {
  using place = createPlace()
  /** Nothing that any command says may have a value of a payload in it, unless it was to be revealed. */
  const guarded = (told: Told, args: readonly string[]) => {
    const isPrivate = !args.includes('--reveal')
    expect({ args, leaks: isPrivate && secrets.test(told.stdout + told.stderr) }).toEqual({ args, leaks: false })
    return told
  }
  const call = async (args: string[], options: RunOptions = {}) =>
    guarded(await place.call(args, { env, ...options }), args)
  const json = async (args: string[], options: RunOptions = {}): Promise<Record<string, unknown>> => {
    const told = await call([...args, '--json'], options)
    return { ...(JSON.parse(told.stdout) as Record<string, unknown>), code: told.code }
  }
  const append = (key: string, type: string, data: object) =>
    json(['events', 'append', key, type, '--data', JSON.stringify(data), ...why('a day of business')])
  const start = () => place.run(['start', '--drain'], { env }).then((told) => guarded(told, ['start']))

  // A bug ships: four accounts are held, one goes on.
  await json(['migrate'])
  await append('ok', 'Credited', { amount: 5 })
  for (const key of ['a', 'b', 'c', 'd']) {
    await append(key, 'Debited', { amount: 471108154, note: 'geheim' })
    await append(key, 'Credited', { amount: 471208154 })
  }
  expect((await start()).code).toBe(0)
  const positions = await heldPositions()
  const [a = 0, , b = 0, , , , d = 0] = positions

  // What is held, and why.
  const status = await call(['status'])
  expect(status.stdout).toMatch(/balances +idle +0 +0s +1 +4 +8 /)
  const list = await call(['dlq', 'list', 'balances'])
  expect(list.stdout.split('\n')).toHaveLength(10)
  expect(list.stdout).toMatch(/parked +Debited +a .*RangeError: can not take \*\*\*/)
  expect(list.stdout).toMatch(/queued +Credited +a .*waits for an earlier letter/)
  expect(await json(['dlq', 'list', '--status', 'parked', '--type', 'Debited', '--limit', '2'])).toMatchObject({
    letters: [{ lane: 'a', status: 'parked', failure: { errorType: 'RangeError', class: 'permanent' } }, { lane: 'b' }],
  })
  expect(await json(['dlq', 'list', 'balances', '--text', 'nothing like it'])).toMatchObject({ code: 0, letters: [] })
  expect(await json(['dlq', 'stats', 'balances'])).toMatchObject({
    subscriptions: [{ lanes: 4, byClass: { permanent: 4 } }],
  })
  const { incidents } = (await json(['dlq', 'incidents', 'balances'])) as { incidents: { fingerprint: string }[] }
  expect(incidents).toMatchObject([{ state: 'open', held: 4, lanes: 4, errorType: 'RangeError' }])
  const incident = incidents[0]?.fingerprint ?? ''
  expect((await call(['dlq', 'incidents'])).stdout).toContain(`${incident} open balances`)
  // The option that selects an incident has one name in every command.
  for (const [given, letters, known] of [
    [incident, 4, 1],
    ['0'.repeat(16), 0, 0],
  ] as const) {
    const listed = (await json(['dlq', 'list', 'balances', '--incident', given])) as { letters: unknown[] }
    expect(listed.letters).toHaveLength(letters)
    const found = (await json(['dlq', 'incidents', '--incident', given])) as { incidents: unknown[] }
    expect(found.incidents).toHaveLength(known)
    const write = ['dlq', 'export', 'balances', '--incident', given, '--output', `${given}.ndjson`]
    expect(await json([...write, ...why('a copy')])).toMatchObject({ code: 0, lines: letters + 1 })
  }
  const shown = await call(['dlq', 'inspect', 'balances', String(a)])
  expect(shown.stdout).toContain('data     { amount: number, note: string }')
  expect(shown.stdout).toMatch(/at Debited \(.*bank\.ts/)
  expect(shown.stderr).toContain(`Next: holdfast dlq redrive balances --letter ${a} --dry-run`)
  expect(await json(['dlq', 'show', 'balances', String(a)])).toMatchObject({
    letter: {
      lane: 'a',
      isHead: true,
      held: { letters: 2 },
      decoded: { shape: { amount: 'number' } },
      behind: [{ type: 'Credited' }],
    },
  })
  const revealed = await call(['dlq', 'show', 'balances', String(a), '--reveal', ...why('a customer called')])
  expect(revealed.stdout).toContain('"amount":471108154')
  expect(await lastDeed()).toMatchObject({ by: 'ada', reason: 'a customer called' })

  // Without the fix it would fail again. What is wrong in one letter is edited, and taken back, and edited again.
  const dry = ['dlq', 'redrive', 'balances', '--incident', incident, '--dry-run']
  expect(await json(dry)).toMatchObject({ code: 3, lanes: 4, totals: { pass: 0, fail: 4, behind: 4 } })
  expect((await call(dry)).stdout).toContain('would fail: RangeError')
  const edit = ['dlq', 'edit', 'balances', String(b)]
  expect(await json([...edit, '--data', '{"amount":"471108154"}', ...why('x')])).toMatchObject({
    code: 2,
    error: { code: 'EVENT_SCHEMA' },
  })
  expect(await json([...edit, '--data', '{"amount":0}', '--dry-run'])).toMatchObject({
    code: 0,
    dryRun: true,
    revision: null,
  })
  const edited = await call([...edit, '--data', '{"amount":0}', ...why('a typing error')])
  expect(edited.stdout).toBe('~ amount: number, changed\n- note: text of 6 characters\n')
  expect(await json([...edit, '--undo', ...why('wrong one')])).toMatchObject({ code: 0 })
  expect(await json([...edit, '--data', '-', ...why('a typing error')], { input: '{"amount":0}' })).toMatchObject({
    code: 0,
    revision: 2,
  })
  expect(await json(['dlq', 'redrive', 'balances', '--lane', 'b', '--dry-run'])).toMatchObject({
    code: 0,
    totals: { pass: 2, fail: 0 },
  })

  // One that is not the head can't be let go alone; one that fails again stays where it is.
  expect(await json(['dlq', 'redrive', 'balances', '--letter', String(a + 1), ...why('x')])).toMatchObject({ code: 2 })
  const again = await json(['dlq', 'replay', 'balances', String(a), ...why('perhaps')])
  expect(again).toMatchObject({
    code: 3,
    redrive: { status: 'done', byState: { failed: 1 } },
    failures: [{ lane: 'a' }],
  })

  // Discarding wants the name, and what was seen still to be there.
  const discard = ['dlq', 'discard', 'balances', '--lane', 'd', ...why('a test account')]
  expect(await json(discard)).toMatchObject({ code: 2, error: { code: 'NOT_CONFIRMED' } })
  expect(await json([...discard, '--yes', '--expect', '0123456789ab'])).toMatchObject({
    code: 1,
    error: { code: 'SELECTION_CHANGED' },
  })
  expect(await json([...discard, '--dry-run'])).toMatchObject({ code: 0, totals: { pass: 2, fail: 0 } })
  expect((await call(discard, { typed: ['nonsense'] })).code).toBe(2)
  expect(await heldPositions()).toEqual(positions)
  expect((await call(discard, { typed: ['balances'] })).stdout).toContain('1 done')
  expect(await json(['dlq', 'show', 'balances', String(d)])).toMatchObject({
    letter: { status: 'discarded', endedBy: 'ada' },
  })

  // The fix ships: a few first, then all.
  writeFileSync(join(place.folder, 'fixed'), '')
  const passes = await call(['dlq', 'redrive', 'balances', '--all', '--dry-run'])
  expect(passes.code).toBe(0)
  expect(passes.stdout).toMatch(/pass a\n/)
  expect(passes.stdout).toContain('3 lanes; letters tried: 6 pass, 0 fail')
  const redriven = await call(['dlq', 'redrive', 'balances', '--all', '--canary', ...why('release 2')])
  expect(redriven.stdout).toMatch(
    /^[\w-]+ done {2}redrive of balances by ada: release 2\n {2}3 lanes: 3 done; 6 letters processed\n$/,
  )
  expect(redriven.code).toBe(0)
  expect(await json(['dlq', 'replay-all', 'balances', ...why('x')])).toMatchObject({
    code: 2,
    error: { code: 'REDRIVE_NOTHING' },
  })
  const { redrives } = (await json(['redrives', 'list', 'balances'])) as { redrives: { id: string; status: string }[] }
  expect(redrives.map(({ status: each }) => each)).toEqual(['done', 'done', 'done'])
  expect((await call(['redrives', 'list'])).stdout).toContain('release 2')
  expect(await json(['redrives', 'show', redrives[0]?.id ?? ''])).toMatchObject({
    code: 0,
    redrive: { lanes: 3, letters: 6 },
  })
  expect(await json(['redrives', 'cancel', redrives[0]?.id ?? '', ...why('late')])).toMatchObject({
    code: 0,
    cancelled: false,
  })

  // The proof.
  expect(await json(['verify'])).toMatchObject({
    code: 0,
    verified: true,
    subscriptions: [
      { subscription: 'balances', counts: { applied: 8, held: 0, discarded: 1 } },
      { subscription: 'mails' },
    ],
  })
  expect(await json(['projections', 'get', 'balances', 'b', '--reveal', ...why('the proof')])).toMatchObject({
    data: { balance: 471208154 },
  })
  expect(await json(['projections', 'get', 'balances', 'd', '--reveal', ...why('the proof')])).toMatchObject({
    data: { balance: 471208154 },
  })
  expect(await json(['dlq', 'incidents', 'balances'])).toMatchObject({ incidents: [{ state: 'resolved', held: 0 }] })
  expect(await json(['audit', 'verify'])).toMatchObject({ code: 0, intact: true })
  const purge = ['dlq', 'purge', 'balances', '--older-than', '0s']
  const { letters, digest } = (await json([...purge, '--dry-run'])) as { letters: number; digest: string }
  expect(letters).toBeGreaterThan(0)
  expect(await json([...purge, ...why('tidy')])).toMatchObject({ code: 2, error: { code: 'NOT_CONFIRMED' } })
  expect(await json([...purge, ...why('tidy'), '--yes', '--expect', digest])).toMatchObject({
    code: 0,
    letters,
  })

  return 'told'

  async function heldPositions(): Promise<number[]> {
    const found = (await json(['dlq', 'list', 'balances'])) as { letters: { position: number }[] }
    return found.letters.map(({ position }) => position)
  }
  async function lastDeed(): Promise<unknown> {
    return ((await json(['audit', 'list', '--limit', '1'])) as { entries: unknown[] }).entries[0]
  }
}

describe('holdfast dlq', () => {
  it('asks for a redrive and leaves it to the engines; it can be cancelled, or carried out by whoever shows it', async () => {
    using place = await held(3)
    const asked = await place.json<{ redrive: { id: string } }>([
      'dlq',
      'redrive',
      'balances',
      '--all',
      '--no-wait',
      ...why('later'),
    ])
    expect(asked).toMatchObject({ code: 0, redrive: { status: 'running', lanes: 3 } })
    expect((await place.call(['doctor'])).stdout).toContain(
      `The redrive ${asked.redrive.id} of balances is waiting, and no engine runs it.`,
    )
    expect(await place.json(['dlq', 'redrive', 'balances', '--all', ...why('me too')])).toMatchObject({
      code: 1,
      error: { code: 'REDRIVE_BUSY' },
    })
    expect(await place.json(['redrives', 'cancel', asked.redrive.id, '--dry-run', ...why('x')])).toMatchObject({
      cancelled: true,
      redrive: { status: 'running' },
    })
    expect(await place.json(['redrives', 'cancel', asked.redrive.id, ...why('not yet')])).toMatchObject({
      cancelled: true,
      redrive: { status: 'cancelled' },
    })
    writeFileSync(join(place.folder, 'fixed'), '')
    const second = await place.json<{ redrive: { id: string } }>([
      'dlq',
      'redrive',
      'balances',
      '--all',
      '--no-wait',
      ...why('now'),
    ])
    const worked = await place.json(['redrives', 'show', second.redrive.id, '--work'])
    expect(worked).toMatchObject({ code: 0, redrive: { status: 'done', byState: { done: 3 } } })
    expect(await place.json(['dlq', 'list'])).toMatchObject({ letters: [] })
  })

  it('says so when the subscription is paused, and does not wait for ever', async () => {
    using place = await held(1)
    await place.json(['subscriptions', 'pause', 'balances', ...why('x')])
    expect(await place.json(['dlq', 'redrive', 'balances', '--all', ...why('x')])).toMatchObject({
      code: 0,
      redrive: { status: 'running' },
      paused: { reason: 'x' },
    })
  })

  it('stops at its budget of failures, and says what failed', async () => {
    using place = await held(5)
    const told = await place.json(['dlq', 'redrive', 'balances', '--all', '--canary', '1,2', ...why('x')])
    expect(told).toMatchObject({
      code: 3,
      redrive: { status: 'stopped', byState: { failed: 1, left: 4 } },
      failures: [{ failure: { errorType: 'RangeError' } }],
    })
  })

  it('edits in the editor of the person, and keeps that they saw it', async () => {
    using place = await held(1)
    const script = join(place.folder, 'editor.sh')
    writeFileSync(script, `#!/bin/sh\nsed -i 's/471108154/3/' "$1"\n`, { mode: 0o755 })
    const told = await place.call(['dlq', 'edit', 'balances', '1', ...why('by hand')], {
      typed: [],
      env: { EDITOR: script },
    })
    expect(told).toMatchObject({ code: 0, stdout: expect.stringContaining('amount') })
    const { letter } = await place.json<{ letter: object }>([
      'dlq',
      'show',
      'balances',
      '1',
      '--reveal',
      ...why('look'),
    ])
    expect(letter).toMatchObject({
      revision: 1,
      decoded: { data: { amount: 3 } },
      original: { data: { amount: 471108154 } },
    })
    const nothing = await place.call(['dlq', 'edit', 'balances', '1', ...why('x')], {
      typed: [],
      env: { EDITOR: 'true' },
    })
    expect(nothing).toMatchObject({ code: 2, stderr: expect.stringContaining('NOT_CONFIRMED') })
    expect(await place.json(['dlq', 'edit', 'balances', '1', ...why('x')])).toMatchObject({
      code: 2,
      error: { code: 'USAGE' },
    })
  })

  it('takes letters elsewhere, where they fail alike', async () => {
    using place = await held(2)
    const file = join(place.folder, 'letters.ndjson')
    expect(await place.json(['dlq', 'export', 'balances', ...why('x')])).toMatchObject({
      code: 2,
      error: { code: 'USAGE' },
    })
    expect(
      await place.json(['dlq', 'export', 'balances', '--history', '--output', file, ...why('to see it at home')]),
    ).toMatchObject({ code: 0 })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const whole = readFileSync(file, 'utf8')
    expect(await place.json(['dlq', 'export', 'balances', '--output', file, ...why('x')])).toMatchObject({
      code: 1,
      error: { code: 'FILE_EXISTS' },
    })
    const { code, stdout } = await place.call(['dlq', 'export', 'balances', '--history', ...why('x')])
    expect({ code, lines: stdout.split('\n').length }).toEqual({ code: 0, lines: whole.split('\n').length })
    expect(await place.json(['dlq', 'import', file, ...why('x')])).toMatchObject({
      code: 1,
      error: { code: 'STORE_NOT_EMPTY' },
    })
    rmSync(place.file)
    for (const suffix of ['-wal', '-shm']) rmSync(`${place.file}${suffix}`, { force: true })
    await place.json(['migrate'])
    expect(await place.json(['dlq', 'import', join(place.folder, 'nothing'), ...why('x')])).toMatchObject({ code: 2 })
    expect(await place.json(['dlq', 'import', file, ...why('at home')])).toMatchObject({ code: 0, letters: 2 })
    await place.run(['start', '--drain', '--allow-effects'])
    expect(await place.json(['dlq', 'list', 'balances'])).toMatchObject({
      letters: [{ failure: { errorType: 'RangeError' } }, {}],
    })
  })

  it('refuses what is wrong, hostile or missing, and changes nothing', async () => {
    using place = await held(2)
    const before = await place.json(['audit', 'list', '--limit', '1000'])
    const hostile = [
      '',
      ' ',
      '-1',
      '1e9',
      '99999999999999999999',
      '1;DROP TABLE x',
      '\u001b[2J',
      '../../x',
      '0',
      '999999',
    ]
    const wrong: string[][] = []
    for (const text of hostile) {
      for (const command of ['show', 'edit', 'replay'])
        wrong.push([command, 'balances', text, ...why('x'), ...(command === 'edit' ? ['--data', '{"amount":1}'] : [])])
      wrong.push(['redrive', 'balances', '--letter', text, ...why('x')])
      wrong.push(
        ['redrive', text, '--all', ...why('x')],
        ['discard', text, '--all', '--yes', ...why('x')],
        ['purge', text, '--yes', ...why('x')],
      )
      wrong.push(
        ['list', text],
        ['stats', text],
        ['incidents', text],
        ['export', text, '--output', 'x.ndjson', ...why('x')],
      )
      wrong.push(['discard', 'balances', '--incident', text, '--yes', ...why('x')])
      wrong.push(['discard', 'balances', '--lane', text, '--yes', ...why('x')])
    }
    wrong.push(
      ['redrive', 'balances', ...why('x')],
      ['redrive', 'balances', '--all'],
      ['redrive', 'balances', '--all', '--lane', 'k1', ...why('x')]
        .filter((each) => each !== '--lane' && each !== 'k1')
        .concat('--letter', '1'),
      ['redrive', 'balances', '--all', '--rate', '0', ...why('x')],
      ['redrive', 'balances', '--all', '--canary', '1,x', ...why('x')],
      ['redrive', 'balances', '--all', '--max-failures', '-1', ...why('x')],
      ['list', 'balances', '--status', 'lost'],
      ['list', 'balances', '--class', 'bad'],
      ['list', 'balances', '--since', 'yesterday'],
      ['list', 'balances', '--limit', '0'],
      ['edit', 'balances', '1', '--data', '{', ...why('x')],
      ['edit', 'balances', '1', '--data', '{}', '--undo', ...why('x')],
      ['edit', 'balances', '1', '--undo', ...why('x')],
      ['edit', 'balances', '1', '--file', 'nothing.json', ...why('x')],
      ['purge', 'balances', '--older-than', 'long', '--yes', ...why('x')],
    )
    for (const args of wrong) {
      const { code, stdout, stderr } = await place.call(['dlq', ...args])
      expect({ args, code, stdout }).toEqual({ args, code: 2, stdout: '' })
      expect(stderr).toMatch(/[A-Z_]+: /)
      expect(stderr).not.toContain('\u001b')
      expect(stderr).not.toContain('    at ')
    }
    for (const text of hostile) {
      expect(await place.json(['redrives', 'show', text])).toMatchObject({ code: 2 })
      expect(await place.json(['redrives', 'cancel', text, ...why('x')])).toMatchObject({ code: 2 })
    }
    expect(await place.json(['audit', 'list', '--limit', '1000'])).toEqual(before)
    expect(await place.json(['dlq', 'list', 'balances'])).toMatchObject({
      letters: [{ status: 'parked' }, { status: 'parked' }],
    })
    expect(await place.json(['redrives', 'list'])).toMatchObject({ redrives: [] })
  })
})

/** A store with so many lanes that are held. */
async function held(lanes: number): Promise<Place> {
  const place = createPlace()
  await place.json(['migrate'])
  for (let i = 1; i <= lanes; i++)
    await place.json([
      'events',
      'append',
      `k${i}`,
      'Debited',
      '--data',
      '{"amount":471108154,"note":"geheim"}',
      ...why('x'),
    ])
  await place.run(['start', '--drain'])
  return place
}

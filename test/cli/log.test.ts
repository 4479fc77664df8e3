import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, vi } from 'vitest'
import { createPlace, type Place } from './place.ts'

vi.setConfig({ testTimeout: 90_000 })

const append = (place: Place, key: string, type: string, data: object, ...more: string[]) =>
  place.json(['events', 'append', key, type, '--data', JSON.stringify(data), '--reason', 'a test', ...more])

describe('holdfast events', () => {
  it('appends what fits its schema, once, and says who', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    expect(await append(place, 'a', 'Credited', { amount: 5 }, '--id', 'one')).toMatchObject({
      code: 0,
      version: 1,
      repeated: false,
    })
    expect(await append(place, 'a', 'Credited', { amount: 5 }, '--id', 'one')).toMatchObject({
      code: 0,
      version: 1,
      repeated: true,
    })
    expect(await append(place, 'a', 'Credited', { amount: 6 }, '--expected-version', '1')).toMatchObject({ version: 2 })
    expect(await append(place, 'a', 'Credited', { amount: 6 }, '--expected-version', '1')).toMatchObject({
      code: 1,
      error: { code: 'EXPECTED_VERSION' },
    })
    expect(await append(place, 'a', 'Credited', { amount: 7 }, '--dry-run')).toMatchObject({ code: 0, dryRun: true })
    const piped = await place.json(['events', 'append', 'b', 'Credited', '--data', '-', '--reason', 'x'], {
      input: '{"amount":1}',
    })
    expect(piped).toMatchObject({ code: 0, version: 1 })
    expect(await append(place, 'b', 'Odd', { any: 1 }, '--raw')).toMatchObject({ code: 0, version: 2 })
    const { event } = await place.json<{ event: object }>(['events', 'show', 'a@2', '--reveal', '--reason', 'look'])
    expect(event).toMatchObject({ key: 'a', version: 2, data: { amount: 6 }, metadata: { actor: 'ada' } })
    const { entries } = await place.json<{ entries: object[] }>(['audit', 'list'])
    expect(entries).toMatchObject([
      {
        act: 'event.append',
        by: 'ada',
        target: 'log/a',
        reason: 'a test',
        details: { type: 'Credited', position: 1, versionBefore: 0, versionAfter: 1 },
      },
      { act: 'event.append', target: 'log/a', details: { position: 2, versionBefore: 1, versionAfter: 2 } },
      { act: 'event.append' },
      { act: 'event.append' },
      { act: 'reveal', target: 'log/2', reason: 'look' },
    ])
  })

  it.each([
    [['a', 'Credited', '--data', '{"amount":"5"}'], 'EVENT_SCHEMA'],
    [['a', 'Credited', '--data', '{amount:5}'], 'EVENT_NOT_JSON'],
    [['a', 'Credited', '--data', ''], 'EVENT_NOT_JSON'],
    [['a', 'Credite', '--data', '{}'], 'NOT_FOUND'],
    [['a', 'No Type', '--data', '{}', '--raw'], 'NAME_INVALID'],
    [['', 'Credited', '--data', '{"amount":5}'], 'EVENT_FIELD_INVALID'],
    [['a\u001b[2J', 'Credited', '--data', '{"amount":5}'], 'EVENT_FIELD_INVALID'],
    [['a', 'Credited', '--data', '{"amount":5,"__proto__":1}'], 'EVENT_FORBIDDEN_KEY'],
    [['a', 'Credited', '--data', '{"amount":5}', '--expected-version', '-1'], 'USAGE'],
    [['a', 'Credited', '--data', '{"amount":5}', '--metadata', '[]'], 'USAGE'],
    [['a', 'Credited', '--data', '{"amount":5}', '--metadata', '{"actor":"somebody else"}'], 'USAGE'],
    [['a', 'Credited', '--data', '{"amount":5}', '--id', ''], 'EVENT_FIELD_INVALID'],
  ])('refuses to append %j', async (args, code) => {
    using place = createPlace()
    await place.json(['migrate'])
    const told = await place.json(['events', 'append', ...args, '--reason', 'x'])
    expect(told).toMatchObject({ code: 2, ok: false, error: { code } })
    expect(await place.json(['events', 'tail'])).toMatchObject({ events: [] })
    expect(await place.json(['audit', 'list'])).toMatchObject({ entries: [] })
  })

  it('does nothing without a reason, and nobody to ask', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    const args = ['events', 'append', 'a', 'Credited', '--data', '{"amount":5}']
    for (const more of [[], ['--reason', ''], ['--reason', '   '], ['--reason', 'x'.repeat(2_001)]])
      expect(await place.json([...args, ...more])).toMatchObject({ code: 2, error: { code: 'USAGE' } })
    expect(await place.json(['events', 'tail'])).toMatchObject({ events: [] })
    expect((await place.call(args, { typed: ['a whim'] })).stderr).toContain('Reason (for the audit): ')
    expect(await place.json(['audit', 'list'])).toMatchObject({ entries: [{ reason: 'a whim', by: 'ada' }] })
  })

  it('shows shapes, and values only with leave; and no trick of a key or of a text reaches a terminal', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    const key = 'k\u202Eevil'
    await append(place, key, 'Credited', { amount: 471108154, note: 'geheim\u001b[2J\u009b' })
    for (const args of [
      ['events', 'tail'],
      ['events', 'history', key],
      ['events', 'show', '1'],
    ]) {
      const human = await place.call(args)
      expect(human.code).toBe(0)
      expect(human.stdout).toContain('{ amount: number, note: string }')
      expect(human.stdout).toContain('k\\u{202e}evil')
      const json = await place.call([...args, '--json'])
      for (const text of [human.stdout, human.stderr, json.stdout]) {
        expect(text).not.toMatch(/471108154|geheim/)
        // oxlint-disable-next-line no-control-regex -- that is what it is about
        expect(text).not.toMatch(/[\u001b\u009b\u202e]/)
      }
      expect(json.stdout).toContain('k\\u202eevil')
      const revealed = await place.call([...args, '--reveal', '--reason', 'look'])
      expect(revealed.stdout).toContain('471108154')
      // oxlint-disable-next-line no-control-regex -- that is what it is about
      expect(revealed.stdout).not.toMatch(/[\u001b\u009b\u202e]/)
      expect(await place.json([...args, '--reveal'])).toMatchObject({ code: 2, error: { code: 'USAGE' } })
    }
    const { entries } = await place.json<{ entries: { act: string }[] }>(['audit', 'list'])
    expect(entries.filter(({ act }) => act === 'reveal')).toHaveLength(3)
  })

  it('finds the last ones, those of a key and those of a type', async () => {
    using place = createPlace()
    {
      await place.json(['migrate'])
      await using store = await place.open()
      const { createLog } = await import('holdfast')
      const log = createLog({ store })
      for (let i = 1; i <= 30; i++)
        await log.append(`k${i % 3}`, [{ type: i % 2 ? 'Credited' : 'Debited', data: { amount: i } }])
    }
    const positions = async (...args: string[]) => {
      const { events } = await place.json<{ events: { position: number }[] }>(['events', 'tail', ...args])
      return events.map(({ position }) => position)
    }
    expect(await positions()).toEqual([21, 22, 23, 24, 25, 26, 27, 28, 29, 30])
    expect(await positions('--limit', '2', '--key', 'k1')).toEqual([25, 28])
    expect(await positions('--limit', '2', '--type', 'Credited')).toEqual([27, 29])
    expect(await positions('--after', '27')).toEqual([28, 29, 30])
    expect(await positions('--key', 'nobody')).toEqual([])
    const { events } = await place.json<{ events: object[] }>([
      'events',
      'history',
      'k1',
      '--after',
      '8',
      '--limit',
      '1',
    ])
    expect(events).toMatchObject([{ key: 'k1', version: 9 }])
    for (const name of ['31', '0', 'k1@11', 'k1@0', 'nobody@1'])
      expect(await place.json(['events', 'show', name])).toMatchObject({ code: 2, error: { code: 'NOT_FOUND' } })
    for (const name of ['x', '-5', '1e3', '@1'])
      expect(await place.json(['events', 'show', name])).toMatchObject({ code: 2 })
    expect(await place.json(['events', 'history', 'nobody'])).toMatchObject({ code: 2, error: { code: 'NOT_FOUND' } })
  })
})

describe('holdfast verify', () => {
  it('proves what is right, and names what is not, without a value', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    await append(place, 'a', 'Credited', { amount: 471108154 })
    await append(place, 'b', 'Debited', { amount: 99 })
    await place.run(['start', '--drain'])
    expect(await place.json(['verify'])).toMatchObject({
      code: 0,
      verified: true,
      subscriptions: [
        { subscription: 'balances', ok: true, counts: { applied: 1, held: 1 } },
        { subscription: 'mails' },
      ],
    })
    const db = new DatabaseSync(place.file)
    db.exec("UPDATE balances SET data = '{\"balance\":4712}' WHERE key = 'a'; DELETE FROM holdfast_lanes")
    db.close()
    const { code, stdout } = await place.call(['verify', 'balances'])
    expect(code).toBe(3)
    expect(stdout).toMatch(/^differs balances/)
    expect(stdout).toContain('row a: 1 field differs (stored → replayed)\n    ~ balance: number, changed')
    expect(stdout).toContain('lane b: it has letters, but is not held')
    expect(stdout).not.toMatch(/471[12]/)
    const revealed = await place.call(['verify', 'balances', '--reveal', '--reason', 'to compare'])
    expect(revealed.stdout).toContain('~ balance: 4712 → 471108154')
    for (const name of ['nobody', 'balance', '', '\u001b[2J', '../x'])
      expect(await place.json(['verify', name])).toMatchObject({ code: 2, error: { code: 'NOT_FOUND' } })
    expect((await place.call(['verify', 'balance'])).stderr).toContain('Did you mean balances?')
  })
})

describe('holdfast doctor and status', () => {
  it('say what is off, and what to do', async () => {
    using place = createPlace()
    await place.json(['migrate'])
    await append(place, 'b', 'Debited', { amount: 99 })
    await place.run(['start', '--drain'])
    const { code, stdout } = await place.call(['doctor'])
    expect(code).toBe(3)
    expect(stdout).toContain('problem lease balances: no running process owns it.\n  Next: holdfast start')
    expect(stdout).toContain('warning held balances: 1 lane is held with 1 letter, for ')
    const status = await place.call(['status'])
    expect(status.code).toBe(0)
    expect(status.stdout).toMatch(/balances +idle +0 +0s +0 +1 +1 +none/)
    expect(status.stdout).toContain('Next: holdfast dlq list balances')
    const narrow = await place.call(['status'], { typed: [], columns: 60, env: { NO_COLOR: '1' } })
    for (const line of narrow.stdout.split('\n').slice(1, 4)) expect(line.length).toBeLessThanOrEqual(78)
  })
})

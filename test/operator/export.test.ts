import { createOperator, defineSubscription } from 'holdfast'
import { createScriptedSource, createTemporaryStore } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { balances, createWorld, heldOf } from '../fixtures.ts'
import { all, codeOf, createScene } from './scene.ts'

const query = { subscription: 'balances' }
const parsed = (lines: readonly string[]) => lines.map((line) => JSON.parse(line) as Record<string, unknown>)

async function exported(history: boolean): Promise<string[]> {
  await using scene = await createScene()
  await scene.operator.revise({ ...query, position: 2 }, { data: { amount: 1 } }, 'typo')
  return all(scene.operator.exportLetters({ query, reason: 'ticket 7', history }))
}

describe('an export', () => {
  it('has every letter in a line of its own, exactly as it came, and is written down', async () => {
    await using scene = await createScene()
    const { operator } = scene
    const lines = await all(operator.exportLetters({ query, reason: 'ticket 7' }))

    expect(lines.every((line) => line.endsWith('\n') && line.indexOf('\n') === line.length - 1)).toBe(true)
    const [first, ...letters] = parsed(lines)
    expect(first).toMatchObject({ holdfast: 'letters', version: 1, subscription: 'balances' })
    expect(letters).toMatchObject([
      { kind: 'letter', lane: 'a', status: 'parked', event: { position: 2, body: '{"amount":2}' }, attempts: [{}] },
      { kind: 'letter', lane: 'a', status: 'queued', event: { position: 3 } },
      { kind: 'letter', lane: 'b', status: 'parked', event: { position: 5 } },
      { kind: 'letter', lane: 'a', status: 'queued', event: { position: 6 } },
    ])
    expect(await operator.audit()).toMatchObject([{ act: 'letters.export', target: 'balances', reason: 'ticket 7' }])
  })

  it('has its times as ISO 8601, and an import also reads an older one, with milliseconds', async () => {
    await using scene = await createScene()
    const { operator } = scene
    await operator.revise({ ...query, position: 2 }, { data: { amount: 1 } }, 'typo')
    await operator.redrive('balances', { lane: 'a' }, { reason: 'fixed' })
    await scene.world.runtime.advance(2_000)
    const lines = await all(operator.exportLetters({ query, all: true, history: true, reason: 'x' }))
    const wrong: string[] = []
    const older = lines.map((line) =>
      JSON.stringify(
        JSON.parse(line, (name, value: unknown) => {
          if (name !== 'at' && !name.endsWith('At')) return value
          const isIso = typeof value === 'string' && /^20\d\d-.*Z$/.test(value)
          if (!isIso) wrong.push(`${name}: ${String(value)}`)
          return isIso ? Date.parse(value) : value
        }),
      ),
    )
    expect(wrong).toEqual([])
    expect(lines.join('')).toMatch(/"heldAt":"20.*"endedAt":"20/)
    for (const each of [lines, older]) {
      await using other = await createWorld()
      const newcomer = createOperator({ store: other.store, subscriptions: [balances], by: 'ada', ...other.runtime })
      expect(await newcomer.importLetters(each, { reason: 'x' })).toMatchObject({ skipped: [] })
    }
  })

  it('is of what is asked for, and nothing is given away without a reason', async () => {
    await using scene = await createScene()
    const { operator } = scene
    const some = parsed(await all(operator.exportLetters({ query: { ...query, lane: 'b' }, reason: 'x' })))
    expect(some).toHaveLength(2)
    expect(await all(operator.exportLetters({ query: { ...query, limit: 2 }, reason: 'x' }))).toHaveLength(3)
    expect(await codeOf(all(operator.exportLetters({ query, reason: '' })))).toBe('OPTION_INVALID')
    expect(await codeOf(all(operator.exportLetters({ query: { subscription: 'no' }, reason: 'x' })))).toBe(
      'SUBSCRIPTION_UNKNOWN',
    )
    expect(await operator.audit()).toHaveLength(2)
  })

  it('has bytes that are no text in base64, and text that came as bytes as text', async () => {
    await using world = await createWorld()
    const source = createScriptedSource()
    const subscription = defineSubscription(balances, { source })
    const bytes = Uint8Array.from({ length: 20_000 }, (_, i) => i % 256)
    source.deliver(
      { key: 'a', type: 'Credited', version: 1, body: bytes },
      { key: 'b', type: 'Credited', version: 1, body: new TextEncoder().encode('{"amount": "ü"}') },
    )
    await world.settle(world.engine([subscription]))
    const operator = createOperator({ store: world.store, subscriptions: [subscription], by: 'ada', ...world.runtime })
    const [, first, second] = parsed(await all(operator.exportLetters({ query, reason: 'x', history: true })))

    const { base64 } = (first as { event: { base64: string } } | undefined)?.event ?? { base64: '' }
    expect(Buffer.from(base64, 'base64').equals(bytes)).toBe(true)
    expect(second?.['event']).toMatchObject({ body: '{"amount": "ü"}' })
  })
})

describe('an import', () => {
  it('makes the same failures elsewhere, with their history, and no revision', async () => {
    const lines = await exported(true)
    expect(parsed(lines).map(({ kind }) => kind)).toEqual([undefined, 'event', 'letter', 'letter', 'letter', 'letter'])
    await using world = await createWorld()
    const operator = createOperator({ store: world.store, subscriptions: [balances], by: 'bob', ...world.runtime })
    const imported = await operator.importLetters(lines, { reason: 'to see it here' })

    expect(imported).toEqual({ events: 5, letters: 4, revised: 1, skipped: [] })
    const engine = world.engine([balances], { allowEffects: true })
    await world.settle(engine)
    const held = await heldOf(engine)
    expect(held.map(({ lane, sequence, status }) => [lane, sequence, status])).toEqual([
      ['a', 2, 'parked'],
      ['a', 3, 'queued'],
      ['b', 1, 'parked'],
      ['a', 4, 'queued'],
    ])
    expect(held[0]).toMatchObject({ failure: { message: 'can not take 2 from 1' }, revision: undefined })
    expect(held.map(({ event }) => event.id)).toEqual(
      parsed(lines).flatMap(({ kind, event }) => (kind === 'letter' ? [(event as { id: string }).id] : [])),
    )
    expect(await operator.audit()).toMatchObject([
      { act: 'letters.import', by: 'bob', details: { events: 5, letters: 4 } },
    ])
  })

  it('is refused where the log has anything: it would be taken for new', async () => {
    const lines = await exported(false)
    await using scene = await createScene()
    await expect(scene.operator.importLetters(lines, { reason: 'x' })).rejects.toMatchObject({
      code: 'STORE_NOT_EMPTY',
      message: expect.stringContaining('Nothing was imported'),
    })
    expect(await scene.operator.audit()).toEqual([])
    expect(await scene.world.store.log.end()).toBe(6)
  })

  it('leaves out what no log takes, and says so', async () => {
    const [header = '', ...rest] = await exported(false)
    const damaged = rest.map((line, i) => {
      const letter = JSON.parse(line) as { event: Record<string, unknown> }
      if (i === 0) letter.event = { ...letter.event, base64: 'AAEC', body: undefined }
      if (i === 1) letter.event['body'] = '{"amount":'
      return JSON.stringify(letter)
    })
    await using store = await createTemporaryStore()
    const operator = createOperator({ store, subscriptions: [], by: 'bob' })
    expect(await operator.importLetters([header, '', ...damaged], { reason: 'x' })).toMatchObject({
      events: 2,
      letters: 2,
      skipped: [
        { line: 3, why: 'its body is not valid UTF-8' },
        { line: 4, why: 'its body is not JSON that a log accepts' },
      ],
    })
  })

  it.for([
    ['nothing', () => []],
    ['no header', ([, ...rest]: string[]) => rest],
    ['a newer form', ([, ...rest]: string[]) => ['{"holdfast":"letters","version":2}', ...rest]],
    ['a line that is cut', (lines: string[]) => [...lines.slice(0, -1), (lines.at(-1) ?? '').slice(0, 40)]],
    ['a line of something else', (lines: string[]) => [...lines, '{"kind":"other"}']],
    ['no event', (lines: string[]) => [...lines, '{"kind":"letter"}']],
    ['an event twice', (lines: string[]) => [...lines, lines.at(-1) ?? '']],
    ['a key that is none', (lines: string[]) => lines.map((line) => line.replace('"key":"b"', '"key":"\\u0000"'))],
    ['a time that is none', (lines: string[]) => lines.map((line) => line.replace(/"time":"[^"]+"/, '"time":"then"'))],
    ['a list', (lines: string[]) => [...lines, '[]']],
    ['no lines', () => [5 as never]],
  ] as const)('refuses a file with %s, and imports nothing of it', async ([, damage]) => {
    const lines = damage(await exported(false))
    await using store = await createTemporaryStore()
    const operator = createOperator({ store, subscriptions: [], by: 'bob' })
    expect(await codeOf(operator.importLetters(lines, { reason: 'x' }))).toBe('IMPORT_INVALID')
    expect(await store.log.end()).toBe(0)
    expect(await store.audit.list(0, 10)).toEqual([])
  })
})

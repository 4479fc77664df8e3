import { createEngine, createLog, createOperator, defineHandler, failure, type Store } from 'holdfast'
import { createMemoryStore } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import type { DeadLetter } from '../../src/dead-letter/letter.ts'
import { hasText } from '../../src/dead-letter/searchable.ts'
import { bank, debited } from '../fixtures.ts'
import { createChance } from '../fuzz/chance.ts'
import { describeEveryStore } from '../rebuild/stores.ts'

// A text filter searches what people see of a letter, the same on every store, also for acts.

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** Everything that JSON, SQL or a pattern could mistake, words that stand around every failure, and letters in both cases. */
const odd = [
  '"',
  '\\',
  "'",
  '%',
  '_',
  '\n',
  '\t',
  '\u0000',
  '\\u0000',
  '\\n',
  '{',
  '}',
  ':',
  ',',
  '[',
  ' ',
  '\u2028',
  '😀',
  '\ud800',
]
const letters = ['ä', 'Ä', 'ß', 'İ', 'K', 'a', 'A', 'z', 'Z', '7']
const words = ['message', 'stack', 'null', 'code', 'errorType', 'Debited', 'key']
const pieces = [...odd, ...letters, ...words]

async function hold(store: Store, seed: number) {
  const chance = createChance(seed)
  const some = (most: number) => Array.from({ length: chance.below(most + 1) }, () => chance.pick(pieces)).join('')
  const calls = defineHandler('calls', {
    events: bank,
    on: {
      Debited: ({ data }) => {
        const cause = Object.assign(new TypeError(some(4)), { name: some(3) || 'TypeError' })
        const inner = failure.permanent(some(6), { cause: data.amount > 15 ? cause : undefined })
        throw Object.assign(inner, { code: data.amount % 2 === 0 ? some(3) : data.amount })
      },
    },
  })
  const log = createLog({ store, events: bank })
  for (let i = 0; i < 30; i++) await log.append(`key-${i} ${some(3).replaceAll(/[\p{Cc}\p{Cs}]/gu, '')}`, [debited(i)])
  const engine = createEngine({ store, subscriptions: [calls], logger: silent })
  await engine.start()
  await engine.drain()
  await engine.stop()
  const operator = createOperator({ store, subscriptions: [calls], by: 'ada' })
  const held = await operator.letters({ subscription: 'calls', limit: 1_000 })
  expect(held).toHaveLength(30)
  return { operator, held, some }
}

/** What a store finds for texts, and what it should. */
async function compare(store: Store, seed: number) {
  const { operator, held, some } = await hold(store, seed)
  const random = Array.from({ length: 100 }, () => some(3))
  const texts = [...pieces, ...random, 'MESSAGE', 'key-1', '0', 'at ', 'failureerror']
  const positions = (all: readonly DeadLetter[]) => all.map(({ event }) => event.position)
  const found: [text: string, positions: readonly number[], lanes: number][] = []
  const wanted: typeof found = []
  for (const text of texts) {
    // Refused at the door.
    if (text === '' || !text.isWellFormed() || text.includes('\0')) continue
    const { lanes } = await operator.select('calls', 'discard', { filter: { text } })
    found.push([text, positions(await operator.letters({ subscription: 'calls', text, limit: 1_000 })), lanes])
    const right = positions(held.filter((letter) => hasText(letter, text)))
    wanted.push([text, right, right.length])
  }
  return { found, wanted }
}

describeEveryStore('a text filter', (open) => {
  it.for([1, 2, 3])('finds what its texts have, and nothing else (%i)', { timeout: 60_000 }, async (seed) => {
    await using place = await open()
    const { found, wanted } = await compare(place.store, seed)
    expect(found).toEqual(wanted)
  })

  it('does not select every letter for a word that stands around every failure', async () => {
    await using place = await open()
    const { store } = place
    const calls = defineHandler('calls', {
      events: bank,
      on: {
        Debited: () => {
          throw failure.permanent('no such account')
        },
      },
    })
    const log = createLog({ store, events: bank })
    for (const key of ['one', 'two']) await log.append(key, [debited(1)])
    const engine = createEngine({ store, subscriptions: [calls], logger: silent })
    await engine.start()
    await engine.drain()
    await engine.stop()
    const operator = createOperator({ store, subscriptions: [calls], by: 'ada' })
    for (const text of ['message', 'stack', 'null', ':', 'fingerprint', 'permanent']) {
      expect(await operator.letters({ subscription: 'calls', text })).toEqual([])
      const discard = operator.discard('calls', { filter: { text } }, { reason: 'a test' })
      await expect(discard).rejects.toMatchObject({ code: 'REDRIVE_NOTHING' })
    }
    expect(await operator.letters({ subscription: 'calls', text: 'SUCH account' })).toHaveLength(2)
    expect(await operator.letters({ subscription: 'calls', text: 'debited' })).toHaveLength(2)
    expect(await operator.letters({ subscription: 'calls', text: 'two' })).toHaveLength(1)
  })
})

describe('memory: a text filter', () => {
  it.for([1, 2, 3])('finds what its texts have, and nothing else (%i)', async (seed) => {
    await using store = createMemoryStore()
    const { found, wanted } = await compare(store, seed)
    expect(found).toEqual(wanted)
  })
})

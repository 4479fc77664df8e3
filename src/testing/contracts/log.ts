import assert from 'node:assert/strict'
import type { LogStore, NewEvent } from '../../log/log-store.ts'
import type { RecordedEvent } from '../../event/event.ts'
import { isIn, type Share } from '../../source/share.ts'
import { type Case, limits, newEvent, appended } from './fixtures.ts'

export const logCases: Record<string, Case> = {
  'numbers events by position over all keys and by version within a key': async ({ log }) => {
    await log.append('a', [newEvent('1'), newEvent('2')], 'any')
    await log.append('b', [newEvent('3')], 'any')
    await log.append('a', [newEvent('4')], 'any')
    const { events: all } = await log.readAll(0, limits)
    assert.deepEqual(
      all.map(({ key, version }) => [key, version]),
      [
        ['a', 1],
        ['a', 2],
        ['b', 1],
        ['a', 3],
      ],
    )
    const positions = all.map(({ position }) => position)
    assert.deepEqual(
      positions,
      positions.toSorted((x, y) => x - y),
    )
    assert.equal(new Set(positions).size, 4)
    assert.equal(await log.head(), positions.at(-1))
  },

  'returns every field unchanged': async ({ log }) => {
    const event: NewEvent = {
      id: 'id-1',
      type: 'Touched',
      schemaVersion: 3,
      time: '2026-01-02T03:04:05.678Z',
      body: '{ "n":9007199254740993, "z":-0, "s":"\\u0000\\ud800 ü 🦑" }',
      metadata: '{"tenant":"t"}',
    }
    const { position } = appended(await log.append('key', [event], 'new'))
    const expected: RecordedEvent = { ...event, key: 'key', version: 1, position }
    assert.deepEqual(await pageOf(log, 0), { events: [expected], through: position })
    assert.deepEqual(await log.readKey('key', 0, limits), [expected])
    assert.deepEqual(await log.find('id-1'), expected)
    assert.equal(await log.find('ID-1'), undefined)
    assert.equal(await log.find('\u0000'), undefined)
  },

  'accepts only the expected version': async ({ log }) => {
    assert.equal((await log.append('k', [newEvent('1')], 'new')).outcome, 'appended')
    assert.deepEqual(await log.append('k', [newEvent('2')], 'new'), { outcome: 'version-conflict', actual: 1 })
    assert.deepEqual(await log.append('k', [newEvent('2')], 0), { outcome: 'version-conflict', actual: 1 })
    assert.deepEqual(await log.append('k', [newEvent('2')], 2), { outcome: 'version-conflict', actual: 1 })
    assert.equal((await log.append('k', [newEvent('2')], 1)).outcome, 'appended')
    assert.equal((await log.readAll(0, limits)).events.length, 2)
  },

  'accepts one of several appends that expect the same version': async ({ log }) => {
    const tries = Array.from({ length: 20 }, (_, i) => log.append('k', [newEvent(`e${i}`)], 'new'))
    const outcomes = (await Promise.all(tries)).map(({ outcome }) => outcome)
    assert.equal(outcomes.filter((outcome) => outcome === 'appended').length, 1)
    assert.equal(outcomes.filter((outcome) => outcome === 'version-conflict').length, 19)
    assert.equal((await log.readAll(0, limits)).events.length, 1)
  },

  'ignores a repeated append with any expected version': async ({ log }) => {
    const events = [newEvent('1'), newEvent('2')]
    const first = appended(await log.append('k', events, 'new'))
    await log.append('k', [newEvent('3')], 'any')
    assert.deepEqual(await log.append('k', events, 'new'), { ...first, outcome: 'repeated' })
    assert.equal((await log.readAll(0, limits)).events.length, 3)
  },

  'refuses an id of another event, and writes nothing': async ({ log }) => {
    await log.append('k', [newEvent('1')], 'any')
    const conflicts = [
      await log.append('k', [{ ...newEvent('1'), body: '{"other":true}' }], 'any'),
      await log.append('k', [{ ...newEvent('1'), type: 'Other' }], 'any'),
      await log.append('other', [newEvent('1')], 'any'),
      await log.append('k', [newEvent('1'), newEvent('2')], 'any'),
      await log.append('k', [newEvent('2'), newEvent('1')], 'any'),
    ]
    await log.append('two', [newEvent('3'), newEvent('4')], 'any')
    conflicts.push(await log.append('two', [newEvent('4'), newEvent('3')], 'any'))
    assert.deepEqual(
      conflicts.map(({ outcome }) => outcome),
      conflicts.map(() => 'id-conflict'),
    )
    assert.equal((await log.readAll(0, limits)).events.length, 3)
  },

  'limits a page by count and by bytes, with at least one event': async ({ log }) => {
    for (let i = 0; i < 5; i++) await log.append('k', [{ ...newEvent(`e${i}`), body: `"${'x'.repeat(98)}"` }], 'any')
    assert.equal((await log.readAll(0, { events: 3, bytes: 1_000 })).events.length, 3)
    assert.equal((await log.readAll(0, { events: 10, bytes: 250 })).events.length, 2)
    assert.equal((await log.readAll(0, { events: 10, bytes: 1 })).events.length, 1)
    assert.equal((await log.readKey('k', 1, { events: 10, bytes: 250 })).length, 2)
    assert.equal((await log.readKey('k', 1, { events: 10, bytes: 1 })).length, 1)
  },

  'returns the lag of a position, and since when, by store time': async ({ log }, { elapse }) => {
    assert.deepEqual(await log.lag(0), { events: 0, since: undefined })
    const { position } = appended(
      await log.append('k', [{ ...newEvent('1'), time: '2099-01-01T00:00:00.000Z' }], 'any'),
    )
    await elapse(5_000)
    await log.append('k', [newEvent('2')], 'any')
    const all = await log.lag(0)
    const rest = await log.lag(position)
    assert.deepEqual([all.events, rest.events], [2, 1])
    assert.ok(all.since !== undefined && rest.since !== undefined)
    assert.ok(all.since <= rest.since)
    assert.ok(rest.since < Date.parse('2099-01-01T00:00:00.000Z'))
  },

  'returns all events of its keys to each partition, and the position they reach': async ({ log }) => {
    const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`)
    for (const round of [1, 2]) for (const key of keys) await log.append(key, [newEvent(`${key}-${round}`)], 'any')
    const head = await log.head()
    const seen: RecordedEvent[] = []
    for (const partition of [0, 1, 2]) {
      let after = 0
      for (let reads = 0; after < head && reads < 100; reads++) {
        const { events, through } = await log.readAll(after, { events: 3, bytes: 1_000_000 }, { partition, of: 3 })
        assert.ok(through > after && events.every(({ position }) => position > after && position <= through))
        assert.ok(events.every(({ key }) => isIn({ partition, of: 3 }, key)))
        seen.push(...events)
        after = through
      }
      assert.equal(after, head)
      assert.deepEqual(await pageOf(log, head, { partition, of: 3 }), { events: [], through: head })
    }
    assert.deepEqual(
      seen.toSorted((x, y) => x.position - y.position),
      (await log.readAll(0, limits)).events,
    )
    const shares = await Promise.all([0, 1, 2].map((partition) => log.lag(0, { partition, of: 3 })))
    assert.equal(
      shares.reduce((sum, { events }) => sum + events, 0),
      keys.length * 2,
    )
    assert.equal(await log.gap(), undefined)
  },

  'limits the page of a partition by bytes, and skips nothing': async ({ log }) => {
    const body = `"${'x'.repeat(98)}"`
    for (let i = 0; i < 30; i++) await log.append(`key-${i % 6}`, [{ ...newEvent(`e${i}`), body }], 'any')
    const share = { partition: 1, of: 2 }
    const mine = (await log.readAll(0, limits)).events.filter(({ key }) => isIn(share, key))
    const seen: RecordedEvent[] = []
    let after = 0
    for (let reads = 0; after < (await log.head()) && reads < 100; reads++) {
      const { events, through } = await log.readAll(after, { events: 100, bytes: reads === 0 ? 1 : 250 }, share)
      assert.ok(events.length <= (reads === 0 ? 1 : 2))
      seen.push(...events)
      after = through
    }
    assert.ok(mine.length > 0)
    assert.deepEqual(seen, mine)
    const since = mine.at(-1)?.position ?? 0
    assert.deepEqual(await log.lag(since, share), { events: 0, since: undefined })
    assert.equal((await log.lag(since - 1, share)).events, 1)
  },

  'wakes listeners until they are removed': async ({ log }) => {
    let woken = 0
    const stop = log.onAppend(() => woken++)
    await log.append('k', [newEvent('1')], 'any')
    assert.ok(woken > 0)
    stop()
    const before = woken
    await log.append('k', [newEvent('2')], 'any')
    assert.equal(woken, before)
  },
}

/** `isEnd` is optional for a store. */
async function pageOf(log: LogStore, after: number, share?: Share) {
  const { events, through } = await log.readAll(after, limits, share)
  return { events, through }
}

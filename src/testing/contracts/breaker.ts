import assert from 'node:assert/strict'
import type { BreakerState } from '../../breaker/breaker.ts'
import type { Case } from './fixtures.ts'

const open: BreakerState = { state: 'open', openedAt: 5, reopensAt: 9, openings: 1 }
const isolated: BreakerState = { state: 'isolated', since: 7, by: 'ada', reason: 'a text with \0 and ü' }

export const breakerCases: Record<string, Case> = {
  'returns no unknown breaker, but its time': async ({ breakers }) => {
    const first = await breakers.load(['mail'])
    assert.deepEqual(first.breakers, [])
    assert.ok(Number.isSafeInteger(first.now) && first.now > Date.UTC(2020))
    assert.ok((await breakers.load([])).now >= first.now)
    assert.deepEqual(await breakers.list(), [])
  },

  'saves a breaker only if it has not changed since it was read': async ({ breakers }) => {
    assert.equal(await breakers.save({ name: 'mail', state: open, record: '{"a":1}' }, 1), false)
    assert.equal(await breakers.save({ name: 'mail', state: open, record: '{"a":1}' }, 0), true)
    assert.equal(await breakers.save({ name: 'mail', state: { state: 'closed' }, record: '{}' }, 0), false)
    const first = { name: 'mail', state: open, record: '{"a":1}', revision: 1 }
    assert.deepEqual((await breakers.load(['mail'])).breakers, [first])
    assert.equal(await breakers.save({ name: 'mail', state: isolated, record: '{"a":2}' }, 1), true)
    assert.equal(await breakers.save({ name: 'mail', state: open, record: '{"a":3}' }, 1), false)
    const second = { name: 'mail', state: isolated, record: '{"a":2}', revision: 2 }
    assert.deepEqual((await breakers.load(['mail'])).breakers, [second])
    await breakers.save({ name: 'another', state: { state: 'closed' }, record: '{}' }, 0)
    assert.deepEqual(
      (await breakers.list()).map(({ name, revision }) => [name, revision]),
      [
        ['another', 1],
        ['mail', 2],
      ],
    )
  },

  'loads several breakers at once, and only the requested ones': async ({ breakers }) => {
    const names = ['a', "b'", 'c "d"', 'ü/é', 'e'.repeat(500)]
    for (const name of names) await breakers.save({ name, state: open, record: name }, 0)
    const { breakers: found } = await breakers.load([...names.slice(1), 'never used'])
    assert.equal(found.length, 4)
    assert.deepEqual(
      new Map(found.map(({ name, record, revision }) => [name, [record, revision]])),
      new Map(names.slice(1).map((name) => [name, [name, 1]])),
    )
  },

  'accepts exactly one of several concurrent saves': async ({ breakers }) => {
    for (const revision of [0, 1, 2]) {
      const saves: boolean[] = await Promise.all(
        Array.from({ length: 20 }, (_, n) => breakers.save({ name: 'mail', state: open, record: String(n) }, revision)),
      )
      const winners = saves.flatMap((isSaved, n) => (isSaved ? [String(n)] : []))
      assert.equal(winners.length, 1)
      const [breaker] = (await breakers.load(['mail'])).breakers
      assert.deepEqual([breaker?.record, breaker?.revision], [winners[0], revision + 1])
    }
  },
}

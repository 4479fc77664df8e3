import { describe, expect, it } from 'vitest'
import { defineSubscription, type RecordedEvent } from '../../src/index.ts'
import { createScriptedSource, type ScriptedSource } from '../../src/testing/source.ts'
import { balances, createWorld, heldOf, rowOf, type World } from '../fixtures.ts'
import { pass } from './consume.ts'

/** A projection of a source that reorders: how far each key is, and which versions are dead letters. */
type Project = (
  world: World,
  source: ScriptedSource,
) => Promise<() => Promise<{ readonly versions: Record<string, number>; readonly letters: readonly string[] }>>

const ours: Project = async (world, source) => {
  const engine = world.engine([defineSubscription(balances, { source })])
  await engine.start()
  return async () => {
    const versions: Record<string, number> = {}
    for (const key of ['a', 'b']) versions[key] = (await rowOf(engine, key))?.version ?? 0
    const held = await heldOf(engine)
    return { versions, letters: held.map(({ event, status }) => `${event.key}${event.version} ${status}`) }
  }
}

/** A version that is not the next can't be retried, so it is put aside; and then no later one is the next. */
const gapIsFinal: Project = async (world, source) => {
  const versions: Record<string, number> = { a: 0, b: 0 }
  const letters: string[] = []
  let position = 0
  const take = ({ key, version = 0 }: RecordedEvent) => {
    const done = versions[key] ?? 0
    if (version === done + 1) versions[key] = version
    else if (version > done) letters.push(`${key}${version} parked`)
  }
  return async () => {
    const signal = new AbortController().signal
    const { events } = await source.read(position, { events: 100, bytes: 2 ** 20 }, signal, { partition: 0, of: 1 })
    for (const event of events) take(event)
    position = events.at(-1)?.position ?? position
    await world.runtime.advance(0)
    return { versions: { ...versions }, letters: [...letters] }
  }
}

describe('a version gap that sends the rest of the account to the dead letters, one by one (ADR-005)', () => {
  async function aGapIsWaitedFor(project: Project): Promise<string[]> {
    await using world = await createWorld()
    const source = createScriptedSource()
    const deliver = (key: string, ...versions: number[]) =>
      source.deliver(...versions.map((version) => ({ key, version, type: 'Credited', data: { amount: version } })))
    const look = await project(world, source)
    deliver('a', 1, 3)
    deliver('b', 1)
    deliver('a', 4)
    await pass(world, 10_000)
    const during = await look()
    deliver('a', 2, 5)
    await pass(world, 10_000)
    const after = await look()
    return [
      ...(during.versions.b === 1 ? [] : ['b waits for a']),
      ...(during.versions.a === 1 ? [] : ['a was applied on a gap']),
      ...(after.versions.a === 5 ? [] : [`a stays at ${after.versions.a} of 5, though nothing is missing`]),
      ...after.letters.map((letter) => `${letter}: a letter of an event that only had to wait`),
    ]
  }

  it('is waited for: the lane is held as it came, and goes on by itself', async () => {
    expect(await aGapIsWaitedFor(ours)).toEqual([])
  })

  it('is found where a gap is an error that no retry can mend', async () => {
    expect(await aGapIsWaitedFor(gapIsFinal)).toEqual([
      'a stays at 2 of 5, though nothing is missing',
      'a3 parked: a letter of an event that only had to wait',
      'a4 parked: a letter of an event that only had to wait',
      'a5 parked: a letter of an event that only had to wait',
    ])
  })
})

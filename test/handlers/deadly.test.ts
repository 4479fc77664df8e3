import { describe, expect, it } from 'vitest'
import type { Exit } from '../chaos/child.ts'
import { cloneDatabase, servers } from '../postgres/databases.ts'
import type { Name } from './consumers.ts'
import { createScene, type Scene } from './scene.ts'
import { Supervisor } from './supervisor.ts'
import type { Act } from './tasks.ts'

// Processes that are killed by what is in an event, and a supervisor that starts them again.

const patience = { timeout: 120_000 }
const causeOf: Partial<Record<Act, Exit>> = {
  exit: { code: 1, signal: null },
  heap: { code: null, signal: 'SIGABRT' },
  loop: { code: null, signal: 'SIGKILL' },
}
const keys = ['a', 'b', 'c', 'd', 'bad']

type Case = readonly [what: string, name: Name, act: Act, hiccups: number]

const deaths: readonly Case[] = [
  ['a handler that exits', 'effects', 'exit', 0],
  ['SQL that exits', 'sql', 'exit', 0],
]
/** Other ways to die, in which the store sees no difference. A reducer also dies in the test with several subscriptions, on both stores. */
const otherDeaths: readonly Case[] = [
  ['a handler that exits when it is tried again', 'effects', 'exit', 2],
  ['a reducer that exits', 'rows', 'exit', 0],
  ['a handler that takes all memory', 'effects', 'heap', 0],
  ['a handler that never gives the thread back, under a watchdog', 'effects', 'loop', 0],
]
const stores = [
  { name: 'SQLite', server: undefined, cases: [...deaths, ...otherDeaths] },
  ...servers.slice(0, 1).map((server) => ({ name: server.name, server, cases: deaths })),
]

describe.for(stores)('in $name an event that kills its process', ({ server, cases }) => {
  it.for(cases)('is parked after four deaths, and nobody else: %s', patience, async ([, name, act, hiccups]) => {
    await using database = server === undefined ? undefined : await cloneDatabase(server)
    await using scene = await createScene([name], database?.url)
    await askAround(scene, { act, hiccups })
    await using supervisor = supervise(scene, [name], act)
    await supervisor.until(() => scene.isSettled(), 6, 60_000)

    expect(supervisor.deaths).toEqual(Array(4).fill(causeOf[act]))
    expect(await heldOf(scene, name)).toEqual(['bad-3 parked crash', 'bad-4 queued', 'bad-5 queued'])
    expect(await scene.differencesOf(name)).toEqual([])
    // Nobody is on trial any more when it is over.
    await supervisor.until(async () => (await scene.trialsOf(name)) === 0, 6, 10_000)
  })

  it('is found among others that kill it too, in other subscriptions of the same process', patience, async () => {
    await using database = server === undefined ? undefined : await cloneDatabase(server)
    const names: readonly Name[] = ['effects', 'rows', 'sql']
    await using scene = await createScene(names, database?.url)
    for (let i = 1; i <= 5; i++) {
      for (const key of ['a', 'b', 'c', 'd']) await scene.ask({ key })
      for (const who of names)
        await scene.ask(i === 3 ? { key: `bad-${who}`, act: 'exit', who } : { key: `bad-${who}` })
    }
    await using supervisor = supervise(scene, names, 'exit')
    await supervisor.until(() => scene.isSettled(), 12, 90_000)

    // No more than four for each; fewer, because the first ones count for all of them.
    expect(supervisor.deaths.length).toBeLessThanOrEqual(12)
    for (const name of names) {
      const bad = `bad-${name}`
      expect(await heldOf(scene, name)).toEqual([`${bad}-3 parked crash`, `${bad}-4 queued`, `${bad}-5 queued`])
    }
  })
})

/** Five events for each key, turn by turn; the third of one is deadly. */
async function askAround(scene: Scene, deadly: { readonly act: Act; readonly hiccups: number }): Promise<void> {
  for (let i = 1; i <= 5; i++)
    for (const key of keys) await scene.ask(key === 'bad' && i === 3 ? { key, ...deadly } : { key })
}

function supervise({ place, file: evidence }: Scene, consumers: readonly Name[], act: Act): Supervisor {
  const settings = { place, name: '', evidence, consumers, ...(act === 'loop' && { watchdog: '500ms' as const }) }
  return new Supervisor(settings, act === 'heap' ? ['--max-old-space-size=64'] : [])
}

async function heldOf(scene: Scene, name: Name): Promise<string[]> {
  const open = await scene.openOf(name)
  return open.map(({ id, status, rule }) => [id, status, ...(rule ? [rule] : [])].join(' '))
}

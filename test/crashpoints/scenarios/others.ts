import { createCommands, defineSubscription } from 'holdfast'
import type { MemoryStore } from '../../../src/testing/memory/store.ts'
import { createScriptedSource, type ScriptedSource } from '../../../src/testing/source.ts'
import type { Actor, Scenario, Scene } from '../scene.ts'
import { calls, notes, steps, walks } from '../steps.ts'
import { has } from './folds.ts'
import { dropRebuild, rebuild, switchRebuild } from '../../acts.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

// ---- SQL

export const sql: readonly Scenario[] = [
  {
    name: 'a page of SQL',
    subscriptions: (scene) => [notes(scene)],
    script: async (scene) => {
      await scene.append('a', 'b', 'a')
      await scene.reached('notes')
    },
    shows: ({ state }) => state.filter((line) => line.startsWith('note ')).length === 3,
  },
  {
    name: 'an event of SQL fails, and the page goes on behind savepoints',
    subscriptions: (scene) => [notes(scene)],
    script: async (scene) => {
      await scene.append('a', 'a!bad', 'a', 'b')
      await scene.held('notes', 'queued', 1)
      await scene.reached('notes')
    },
    shows: has('parked', 1),
  },
  {
    name: 'a lane of SQL is redriven',
    subscriptions: (scene) => [notes(scene)],
    script: async (scene) => {
      await scene.append('a!bad', 'a', 'b')
      await scene.held('notes', 'queued', 1)
      scene.mend()
      await scene.ask('redrive', 'notes', { all: true })
    },
    shows: has('resolved', 2),
  },
]

// ---- Processes

const shared: Scenario['subscriptions'] = (scene, outside) => [
  defineSubscription(walks(scene), { partitions: 2 }),
  defineSubscription(calls(scene, outside), { partitions: 2 }),
]

export const processes: readonly Scenario[] = [
  {
    name: 'a process dies, and another one takes over its partitions',
    processes: 2,
    subscriptions: shared,
    script: async (scene) => {
      await scene.append('a', 'b', 'c')
      await scene.reached('calls')
      scene.kill(1)
      await scene.append('a', 'b', 'c', 'd')
      await scene.reached('calls')
      await scene.reached('walks')
    },
    shows: ({ history }) => history.happenings.some(({ kind }) => kind === 'kill'),
  },
  {
    name: 'processes hand partitions over to each other',
    processes: 2,
    begins: [0],
    subscriptions: shared,
    script: async (scene) => {
      await scene.append('a', 'b')
      await scene.reached('calls')
      scene.launch(1)
      await scene.append('c', 'a')
      await scene.until('both have some', async ({ subscriptions }) => {
        const states = await subscriptions.partitions('calls')
        return new Set(states.map(({ owner }) => owner?.split('.')[0])).size === 2
      })
      await scene.stop(0)
      await scene.append('a', 'b', 'c')
      await scene.reached('calls')
      await scene.reached('walks')
    },
    shows: ({ state }) => state.filter((line) => line.startsWith('row walks')).length === 3,
  },
]

// ---- Rebuilds

const versions: Scenario['subscriptions'] = (scene, _outside, slot) => [walks(scene, { version: slot + 1 })]

function about({ store, runtime }: Actor) {
  return { store, ...runtime, logger: silent }
}

const answer = { by: 'ada', reason: 'another form' } as const

/** The process that has the new version is there already, and waits until it is the live one. */
async function rebuilt(scene: Scene): Promise<void> {
  scene.launch(1)
  await scene.act((actor) => rebuild(walks(scene, { version: 2 }), { ...about(actor), load: 1, lease: '2s' }))
}

/** Switches to a version unless that is the live one already, because whoever died over it had done it. */
async function switched(scene: Scene, version: number): Promise<void> {
  await scene.act(async (actor) => {
    const live = (await actor.store.rebuilds.list('walks')).find(({ isLive }) => isLive)
    if (live?.version === version) return
    await switchRebuild(walks(scene, { version }), { ...about(actor), ...answer, wait: '30s' })
  })
}

export const rebuilds: readonly Scenario[] = [
  {
    name: 'a projection is rebuilt beside the live one, and switched to',
    processes: 2,
    begins: [0],
    isBegunAnew: true,
    subscriptions: versions,
    script: async (scene) => {
      await scene.append('a', 'b')
      await scene.reached('walks')
      await rebuilt(scene)
      await scene.append('a')
      await scene.reached('walks')
      await switched(scene, 2)
      await scene.append('b')
      await scene.reached('walks')
    },
    shows: ({ state }) => state.some((line) => line.startsWith('subscription walks ') && line.includes('"version":2')),
  },
  {
    name: 'a switch is taken back, and what was built is dropped',
    processes: 2,
    begins: [0],
    isBegunAnew: true,
    subscriptions: versions,
    script: async (scene) => {
      await scene.append('a', 'b')
      await scene.reached('walks')
      await rebuilt(scene)
      await switched(scene, 2)
      await scene.append('a')
      await scene.reached('walks')
      await switched(scene, 1)
      await scene.reached('walks')
      await scene.act(async ({ store, runtime }) => {
        const known = await store.rebuilds.list('walks')
        if (known.some(({ version }) => version === 2))
          await dropRebuild('walks', { store, version: 2, ...answer, clock: runtime.clock })
      })
    },
    shows: ({ state }) => state.some((line) => line.includes('projection.drop')),
  },
  {
    name: 'a projection with a lane that is held is rebuilt',
    processes: 2,
    begins: [0],
    isBegunAnew: true,
    subscriptions: versions,
    script: async (scene) => {
      await scene.append('a', 'a!bad', 'a', 'b')
      await scene.held('walks', 'parked', 1)
      await rebuilt(scene)
      await switched(scene, 2)
      await scene.append('a', 'b')
      await scene.reached('walks')
      scene.mend()
      await scene.ask('redrive', 'walks', { all: true })
    },
    shows: has('resolved', 3),
  },
]

// ---- The log, and other sources

/** Kept by somebody else, and so by the scene: no process takes it with it. */
const sources = new WeakMap<Scene, ScriptedSource>()

function sourceOf(scene: Scene): ScriptedSource {
  const known = sources.get(scene) ?? createScriptedSource('elsewhere')
  sources.set(scene, known)
  return known
}

function delivered(scene: Scene, key: string, ...numbers: readonly number[]): void {
  sourceOf(scene).deliver(
    ...numbers.map((n) => ({ key, type: 'Stepped', version: n, data: { n, flaw: 'none' }, id: `${key}-${n}` })),
  )
}

const elsewhere: Scenario['subscriptions'] = (scene) => [defineSubscription(walks(scene), { source: sourceOf(scene) })]

function reachedSource(scene: Scene): Promise<void> {
  return scene.until('the source is read', async ({ subscriptions }) => {
    const head = await sourceOf(scene).head()
    const states = await subscriptions.partitions('walks')
    return states.length > 0 && states.every(({ checkpoint }) => checkpoint.position >= head)
  })
}

export const logs: readonly Scenario[] = [
  {
    name: 'versions come late and twice, and their lane waits for them',
    subscriptions: elsewhere,
    script: async (scene) => {
      delivered(scene, 'a', 1, 3, 4)
      await scene.held('walks', 'waiting', 1)
      delivered(scene, 'b', 1)
      delivered(scene, 'a', 2, 2)
      // Otherwise whether the last one has to queue would be a matter of how large a page is.
      await scene.until('the lane flows', async ({ letters }) => (await letters.summary('walks', 0)).lanes === 0)
      delivered(scene, 'a', 5)
      await reachedSource(scene)
    },
    shows: ({ state }) => state.some((line) => line.startsWith('row walks a') && line.includes('"version":5')),
  },
  {
    name: 'a version never comes, and is skipped',
    subscriptions: elsewhere,
    script: async (scene) => {
      delivered(scene, 'a', 1, 3, 4)
      await scene.held('walks', 'queued', 1)
      await scene.ask('skip', 'walks', { lane: 'a' })
      await reachedSource(scene)
    },
    shows: ({ state }) => state.some((line) => line.startsWith('row walks a') && line.includes('"version":4')),
  },
  {
    name: 'appends that expect a version',
    subscriptions: (scene) => [walks(scene)],
    script: async (scene) => {
      for (const n of [1, 2, 3])
        await scene.act(({ log }) =>
          log.append('a', [{ id: `a-${n}`, type: 'Stepped', data: { n, flaw: 'none' } }], { expectedVersion: n - 1 }),
        )
      await scene.reached('walks')
    },
    shows: ({ state }) => state.filter((line) => line.startsWith('event ')).length === 3,
  },
  {
    name: 'a command with an idempotency key is executed',
    subscriptions: (scene) => [walks(scene)],
    script: async (scene) => {
      for (const name of ['one', 'two'])
        await scene.act(async ({ store, runtime }) => {
          const commands = createCommands({
            store,
            events: steps,
            initial: () => ({ last: 0 }),
            on: { Stepped: (_state, { data }) => ({ last: data.n }) },
            ...runtime,
          })
          await commands.execute('a', ({ last }) => [{ type: 'Stepped', data: { n: last + 1, flaw: 'none' } }], {
            idempotencyKey: name,
          })
        })
      await scene.reached('walks')
    },
    shows: ({ state }) => state.some((line) => line.startsWith('row walks a') && line.includes('"version":2')),
  },
  {
    name: 'an append in a transaction leaves a gap until it is over',
    stores: ['server'],
    subscriptions: (scene) => [walks(scene)],
    script: async (scene) => {
      const slow = scene.act(async ({ store, log }) => {
        await (store as MemoryStore).transaction(async (tx) => {
          await log.append('a', [{ id: 'a-1', type: 'Stepped', data: { n: 1, flaw: 'none' } }], { tx })
          await scene.wait(300)
          await tx.put('orders', 'a', { n: 1 })
        })
      })
      await scene.wait(100)
      await scene.append('b', 'b')
      await slow
      await scene.reached('walks')
    },
    shows: ({ witness }) => (witness as MemoryStore).table('orders').size === 1,
  },
]

import { definePolicy, exponential, fixed, park, pause, retry } from 'holdfast'
import type { Scenario } from '../scene.ts'
import { calls } from '../steps.ts'
import { has } from './folds.ts'

const subscriptions: Scenario['subscriptions'] = (scene, outside) => [calls(scene, outside)]

/** Failures over several lanes without a success between them are an outage. */
const cautious = definePolicy({
  transient: retry({ attempts: 3, backoff: fixed('300ms') }).then(park),
  dependency: pause({
    failures: 3,
    for: '500ms',
    before: retry({ unlimited: true, backoff: exponential('200ms', { cap: '1s' }) }),
  }),
  infrastructure: retry({ attempts: 3, backoff: fixed('300ms') }).then(park),
  outage: { lanes: 2, backoff: fixed('500ms') },
})

/** Every event had its effect. */
const allDone: Scenario['shows'] = ({ scene: { effects, written } }) =>
  [...written].every(
    ([key, count]) => new Set(effects.filter((one) => one.key === key).map(({ n }) => n)).size === count,
  )

export const handlers: readonly Scenario[] = [
  {
    name: 'events are handled',
    subscriptions,
    script: async (scene) => {
      await scene.append('a', 'a', 'b')
      await scene.reached('calls')
    },
    shows: allDone,
  },
  {
    name: 'eight lanes run side by side',
    subscriptions: (scene, outside) => [calls(scene, outside, { concurrency: 8 })],
    script: async (scene) => {
      await scene.append('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'a')
      await scene.reached('calls')
    },
    shows: allDone,
  },
  {
    name: 'a slow event leaves marks above the checkpoint',
    subscriptions: (scene, outside) => [calls(scene, outside, { concurrency: 4, timeout: '10s' })],
    script: async (scene) => {
      await scene.append('b', 'b', 'a!slow', 'c')
      await scene.until('others are done before it', async ({ subscriptions: store }) =>
        (await store.partitions('calls')).some(({ marks }) => marks.length > 0),
      )
      await scene.reached('calls')
    },
    shows: allDone,
  },
  {
    name: 'a poisoned event of a handler is parked',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad', 'a', 'b')
      await scene.reached('calls')
    },
    shows: has('parked', 1),
  },
  {
    name: 'a handler is redriven',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad', 'a', 'b')
      await scene.held('calls', 'queued', 1)
      scene.mend()
      await scene.ask('redrive', 'calls', { all: true })
    },
    shows: allDone,
  },
  {
    name: 'a retry becomes due',
    subscriptions: (scene, outside) => [
      calls(scene, outside, {
        failure: definePolicy({ transient: retry({ unlimited: true, backoff: fixed('500ms') }), outage: false }),
      }),
    ],
    script: async (scene) => {
      await scene.append('a!later', 'a')
      await scene.held('calls', 'queued', 1)
      scene.mend()
      await scene.reached('calls')
    },
    shows: has('resolved', 2),
  },
  {
    name: 'retries come to their end, and the event is parked',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!later', 'b')
      await scene.held('calls', 'parked', 1)
    },
    shows: has('parked', 1),
  },
  {
    name: 'a breaker opens, lets a probe through, and closes',
    isTimed: true,
    subscriptions: (scene, outside) => [
      calls(scene, outside, { concurrency: 1, breaker: { opens: { failures: 2 }, cooldown: '1s' } }),
    ],
    script: async (scene) => {
      scene.setService(false)
      await scene.append('a', 'b', 'c', 'a')
      await scene.until('the breaker is open', async ({ breakers }) =>
        (await breakers.list()).some(({ state }) => state.state === 'open'),
      )
      scene.setService(true)
      await scene.reached('calls')
    },
    shows: (ending) =>
      allDone(ending) && ending.state.some((line) => line.startsWith('breaker ') && line.includes('closed')),
  },
  {
    name: 'one of several breakers is open, and its lanes wait',
    isTimed: true,
    subscriptions: (scene, outside) => [
      calls(scene, outside, { breaker: { key: ({ key }) => key, opens: { failures: 1 }, cooldown: '1s' } }),
    ],
    script: async (scene) => {
      await scene.append('a!down', 'b', 'a')
      await scene.until('the breaker of a is open', async ({ breakers }) =>
        (await breakers.list()).some(({ state }) => state.state === 'open'),
      )
      await scene.append('b')
      scene.mend()
      await scene.reached('calls')
    },
    shows: allDone,
  },
  {
    name: 'a person isolates a breaker and resets it',
    subscriptions: (scene, outside) => [calls(scene, outside, { breaker: { opens: { failures: 5 }, cooldown: '1s' } })],
    script: async (scene) => {
      await scene.append('a')
      await scene.reached('calls')
      await scene.act(({ operator }) => operator.isolateBreaker('calls', 'they asked us to'))
      await scene.append('a', 'b')
      await scene.wait(200)
      await scene.act(({ operator }) => operator.resetBreaker('calls', 'they are back'))
      await scene.reached('calls')
    },
    shows: (ending) => allDone(ending) && ending.state.some((line) => line.includes('breaker.reset')),
  },
  {
    name: 'an outage is noticed and ends, and the attempts are given back',
    isTimed: true,
    subscriptions: (scene, outside) => [calls(scene, outside, { failure: cautious, concurrency: 1 })],
    script: async (scene) => {
      await scene.append('a!later', 'b!later', 'c!later', 'a')
      await scene.told('blocked')
      scene.mend()
      await scene.reached('calls')
    },
    shows: (ending) => allDone(ending) && !ending.state.some((line) => line.includes('"status":"parked"')),
  },
  {
    name: 'what a handler calls goes away and comes back',
    isTimed: true,
    subscriptions: (scene, outside) => [calls(scene, outside, { failure: cautious, concurrency: 2 })],
    script: async (scene) => {
      scene.setService(false)
      await scene.append('a', 'b', 'c', 'd', 'a')
      await scene.told('blocked')
      scene.setService(true)
      await scene.reached('calls')
    },
    shows: allDone,
  },
  {
    name: 'the store goes away and comes back',
    subscriptions,
    script: async (scene) => {
      await scene.append('a', 'b')
      await scene.reached('calls')
      scene.setStore(false)
      await scene.wait(1_000)
      scene.setStore(true)
      await scene.append('a', 'b')
      await scene.reached('calls')
    },
    shows: allDone,
  },
  {
    name: 'an event that kills the process is parked',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!deadly', 'a', 'b')
      await scene.held('calls', 'parked', 1)
    },
    shows: has('parked', 1),
  },
  {
    name: 'an event that killed the process is redriven',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!deadly', 'b')
      await scene.held('calls', 'parked', 1)
      scene.mend()
      await scene.ask('redrive', 'calls', { all: true })
    },
    shows: allDone,
  },
  {
    name: 'a partition in strict order blocks until it goes through',
    subscriptions: (scene, outside) => [calls(scene, outside, { order: 'partition' })],
    script: async (scene) => {
      await scene.append('a', 'b!later', 'a')
      await scene.told('blocked')
      scene.mend()
      await scene.reached('calls')
    },
    shows: (ending) => allDone(ending) && !ending.state.some((line) => line.startsWith('letter ')),
  },
  {
    name: 'without an order a failure holds up nobody',
    subscriptions: (scene, outside) => [calls(scene, outside, { order: 'none' })],
    script: async (scene) => {
      await scene.append('a!bad', 'a', 'b')
      await scene.held('calls', 'parked', 1)
      await scene.reached('calls')
      scene.mend()
      await scene.ask('redrive', 'calls', { all: true })
    },
    shows: allDone,
  },
  {
    name: 'what was done under another name is not done again',
    subscriptions: (scene, outside) => [
      calls(scene, outside, { dedupe: { by: ({ data }) => `step ${data.n}`, window: 'forever', store: 'store' } }),
    ],
    script: async (scene) => {
      await scene.append('a', 'a')
      await scene.reached('calls')
      await scene.append('b')
      await scene.reached('calls')
    },
    shows: ({ state, scene: { effects } }) =>
      state.filter((line) => line.startsWith('mark ')).length === 2 && effects.every(({ key }) => key === 'a'),
  },
]

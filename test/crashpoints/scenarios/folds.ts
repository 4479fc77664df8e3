import type { Scenario } from '../scene.ts'
import { walks } from '../steps.ts'

const subscriptions: Scenario['subscriptions'] = (scene) => [walks(scene)]

/** Ends with so many letters of such a status. */
export function has(status: string, count: number): Scenario['shows'] {
  return ({ state }) =>
    state.filter((line) => line.startsWith('letter ') && line.includes(`"status":"${status}"`)).length === count
}

export const folds: readonly Scenario[] = [
  {
    name: 'a page of a fold',
    subscriptions,
    script: async (scene) => {
      await scene.append('a', 'b', 'a', 'b')
      await scene.reached('walks')
    },
    shows: ({ state }) => state.filter((line) => line.startsWith('row walks ')).length === 2,
  },
  {
    name: 'several pages of a fold',
    engine: { page: { events: 2 } },
    subscriptions,
    script: async (scene) => {
      await scene.append('a', 'a', 'a', 'b', 'b')
      await scene.reached('walks')
    },
    shows: ({ state }) => state.some((line) => line.startsWith('row walks a') && line.includes('"version":3')),
  },
  {
    name: 'a page with a poisoned event',
    subscriptions,
    script: async (scene) => {
      await scene.append('a', 'a!bad', 'a', 'b')
      await scene.reached('walks')
    },
    shows: has('parked', 1),
  },
  {
    name: 'events queue behind a lane that is held',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad')
      await scene.held('walks', 'parked', 1)
      await scene.append('a', 'b', 'a')
      await scene.held('walks', 'queued', 2)
    },
    shows: has('queued', 2),
  },
  {
    name: 'a subscription is paused and resumed',
    subscriptions,
    script: async (scene) => {
      await scene.append('a')
      await scene.reached('walks')
      await scene.act(({ operator }) => operator.pause('walks', 'stop'))
      await scene.append('a', 'b')
      await scene.wait(100)
      await scene.act(({ operator }) => operator.resume('walks', 'go on'))
      await scene.reached('walks')
    },
    shows: ({ state }) => state.some((line) => line.includes('subscription.resume')),
  },
  {
    name: 'a projection begins anew',
    isBegunAnew: true,
    subscriptions,
    script: async (scene) => {
      await scene.append('a', 'a!bad', 'b')
      await scene.held('walks', 'parked', 1)
      scene.mend()
      await scene.act(({ operator }) => operator.reset('walks', 'mended'))
      await scene.reached('walks')
    },
    shows: ({ state }) =>
      !state.some((line) => line.startsWith('letter ')) && state.some((line) => line.includes('subscription.reset')),
  },
  {
    name: 'what is there is verified while the engine works',
    subscriptions,
    script: async (scene) => {
      await scene.append('a', 'a!bad')
      await scene.reached('walks')
      await scene.append('a', 'b')
      await scene.act(async ({ store, runtime }) => {
        await scene.verify(store, runtime, 'walks')
      })
      await scene.reached('walks')
    },
    shows: has('parked', 1),
  },
]

import { defineSubscription, type Store } from 'holdfast'
import type { Scenario } from '../scene.ts'
import { walks } from '../steps.ts'
import { has } from './folds.ts'

const subscriptions: Scenario['subscriptions'] = (scene) => [walks(scene)]

export const redrives: readonly Scenario[] = [
  {
    name: 'a lane is redriven',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad', 'a', 'b!bad')
      await scene.held('walks', 'parked', 2)
      scene.mend()
      await scene.ask('redrive', 'walks', { lane: 'a' })
    },
    shows: has('resolved', 2),
  },
  {
    name: 'all lanes are redriven',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad', 'a', 'b!bad', 'b', 'c!bad')
      await scene.held('walks', 'parked', 3)
      scene.mend()
      await scene.ask('redrive', 'walks', { all: true })
    },
    shows: has('resolved', 5),
  },
  {
    name: 'lanes are redriven in stages',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad', 'b!bad', 'c!bad', 'd!bad')
      await scene.held('walks', 'parked', 4)
      scene.mend()
      await scene.ask('redrive', 'walks', { all: true }, { canary: [1, 1] })
    },
    shows: has('resolved', 4),
  },
  {
    name: 'a redrive in stages fails at the first and stops',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad', 'b!bad', 'c!bad')
      await scene.held('walks', 'parked', 3)
      await scene.ask('redrive', 'walks', { all: true }, { canary: [1] })
    },
    shows: ({ state }) => state.some((line) => line.startsWith('redrive ') && line.includes('"stopped"')),
  },
  {
    name: 'a redrive fails again',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad', 'a')
      await scene.held('walks', 'queued', 1)
      await scene.ask('redrive', 'walks', { lane: 'a' })
    },
    shows: ({ state }) => state.some((line) => line.startsWith('redrive-lane ') && line.includes('"failed"')),
  },
  {
    name: 'a letter is discarded',
    subscriptions,
    script: async (scene) => {
      await scene.append('a', 'a!bad', 'a')
      await scene.held('walks', 'queued', 1)
      await scene.ask('discard', 'walks', { lane: 'a' })
    },
    shows: has('discarded', 1),
  },
  {
    name: 'a letter is resolved by hand',
    subscriptions,
    script: async (scene) => {
      await scene.append('a', 'a!bad', 'a')
      await scene.held('walks', 'queued', 1)
      await scene.ask('resolve', 'walks', { lane: 'a' })
    },
    shows: ({ state }) => state.some((line) => line.startsWith('letter ') && line.includes('"endedReason":"resolve"')),
  },
  {
    name: 'a letter is revised and redriven',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad', 'a')
      await scene.held('walks', 'queued', 1)
      await scene.act(async ({ operator }) => {
        const [letter] = await operator.letters({ subscription: 'walks', status: 'parked' })
        if (!letter || letter.revision) return
        await operator.revise(
          { subscription: 'walks', position: letter.event.position },
          { data: { n: 1, flaw: 'none' } },
          'typed wrongly',
        )
      })
      await scene.ask('redrive', 'walks', { lane: 'a' })
    },
    shows: has('resolved', 2),
  },
  {
    name: 'parked lanes are redriven by the timetable',
    engine: { lease: '20s', beat: '10s', poll: '10s' },
    subscriptions: (scene) => [defineSubscription(walks(scene), { redrive: { every: '1m' } })],
    script: async (scene) => {
      await scene.append('a!bad', 'a')
      await scene.held('walks', 'queued', 1)
      scene.mend()
      await scene.until(
        'the timetable has come round',
        async ({ letters }) => {
          const found = await letters.list({ subscription: 'walks', limit: 10 })
          return found.every(({ status }) => status === 'resolved')
        },
        1_000,
      )
    },
    shows: has('resolved', 2),
  },
  {
    name: 'resolved letters are purged by a person',
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad', 'b')
      await scene.held('walks', 'parked', 1)
      scene.mend()
      await scene.ask('redrive', 'walks', { all: true })
      await scene.wait(1_000)
      await scene.act(({ operator }) => operator.purge('walks', { reason: 'tidy', olderThan: '100ms' }))
    },
    shows: ({ state }) =>
      state.some((line) => line.includes('letters.purge')) && !state.some((line) => line.startsWith('letter ')),
  },
  {
    name: 'resolved letters are purged when their time is over',
    engine: { lease: '20m', beat: '10m', poll: '10m', retention: '1m' },
    subscriptions,
    script: async (scene) => {
      await scene.append('a!bad', 'b')
      await scene.held('walks', 'parked', 1)
      scene.mend()
      await scene.ask('redrive', 'walks', { all: true })
      const areGone = async ({ letters }: Store) =>
        (await letters.list({ subscription: 'walks', limit: 1 })).length === 0
      await scene.until('they are gone', areGone, 60_000)
    },
    shows: ({ state }) => state.some((line) => line.includes('letters.purge')),
  },
]

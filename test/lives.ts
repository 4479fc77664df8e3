import {
  createLog,
  defineHandler,
  definePolicy,
  type Engine,
  type EngineOptions,
  fixed,
  type HandlerContext,
  type HandlerDefinition,
  park,
  type Policy,
  retry,
} from '../src/index.ts'
import { bank, credited, type World } from './fixtures.ts'
import { createMortal, type Mortal } from './mortal.ts'

// Processes that die in virtual time. Those that really die are in test/handlers.

export interface Call {
  readonly key: string
  readonly amount: number
  readonly ctx: HandlerContext
}

export const leaseMs = 10_000

/** Lives one after the other on one store, each with the same handler, which does what `act` says. */
export function livesOf(
  world: World,
  act: (call: Call, life: Mortal) => unknown,
  policy: Policy = plain,
  options: Partial<EngineOptions> = {},
  breaker?: HandlerDefinition<typeof bank>['breaker'],
) {
  const lives: { readonly life: Mortal; readonly calls: Call[] }[] = []
  const begin = () => {
    const calls: Call[] = []
    const handler = defineHandler('notify', {
      events: bank,
      failure: policy,
      timeout: '1h',
      ...(breaker && { breaker }),
      on: {
        Credited: ({ key, data }, ctx) => {
          const call = { key, amount: data.amount, ctx }
          calls.push(call)
          return act(call, life)
        },
      },
    })
    const life = createMortal(world, [handler], options)
    lives.push({ life, calls })
    return life
  }
  const live = async (ms: number) => {
    const life = begin()
    await life.engine.start()
    await world.runtime.advance(ms)
    return life
  }
  return {
    lives,
    begin,
    live,
    /** The calls of all lives, or of one; 1 is the first. */
    callsOf: (key: string, life?: number) =>
      (life === undefined ? lives : [lives[life - 1]]).flatMap(
        (one) => one?.calls.filter((call) => call.key === key).map(({ amount }) => amount) ?? [],
      ),
    /** Until one of them lives on, or there were too many. */
    untilOneLives: async (most = 8): Promise<{ readonly engine: Engine; readonly deaths: number }> => {
      for (let deaths = 0; deaths < most; deaths++) {
        const life = await live(leaseMs + 5_000)
        if (!life.isDead) return { engine: life.engine, deaths }
      }
      throw new Error(`${most} processes died.`)
    },
  }
}

export const plain = definePolicy({ outage: false })
export const retrying = definePolicy({
  transient: retry({ attempts: 100, backoff: fixed('1s') }).then(park),
  outage: false,
})

/** Dies, and never comes back. */
export function die(life: Mortal): Promise<never> {
  life.die()
  return new Promise(() => undefined)
}

export async function fill(world: World, keys: readonly string[], events: number): Promise<void> {
  const log = createLog({ store: world.store, events: bank })
  for (let i = 1; i <= events; i++) for (const key of keys) await log.append(key, [credited(i)])
}

/** What the store has on trial. */
export async function trialsOf({ store }: World) {
  return (await store.subscriptions.partitions('notify'))[0]?.trials ?? []
}

import {
  createEngine,
  createLog,
  createOperator,
  defineHandler,
  definePolicy,
  type Engine,
  failure,
  fixed,
  type Handler,
  type HandlerDefinition,
  type Log,
  type Operator,
  park,
  retry,
} from 'holdfast'
import { bank } from '../fixtures.ts'
import type { HeldLane } from '../../src/dead-letter/letter.ts'
import type { TwoStores } from './two-stores.ts'

export const patience = { timeout: 15_000, interval: 20 }
export const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

export interface Call {
  readonly key: string
  readonly amount: number
  readonly attempt: number
}

export interface BreakerScene extends AsyncDisposable {
  readonly engine: Engine
  readonly handler: Handler
  readonly log: Log<typeof bank>
  /** Of another process: it shares nothing with the engine but the store. */
  readonly operator: Operator
  /** What the handler was called with, in order. */
  readonly calls: Call[]
  readonly callsOf: (key: string) => number[]
  /** The held lanes of all partitions, in order of their names. */
  readonly lanes: () => Promise<readonly HeldLane[]>
  /** The endpoint fails while this is true. */
  readonly endpoint: { isDown: boolean }
}

/** The endpoint is the beginning of the key: `x/7` goes to x. */
export const byEndpoint = ({ key }: { readonly key: string }): string => key.split('/')[0] ?? ''

/** A handler behind a breaker whose cooldown outlasts every test, and an operator in another process. */
export async function createBreakerScene(
  { store, other }: TwoStores,
  options: Partial<HandlerDefinition<typeof bank>> = {},
): Promise<BreakerScene> {
  const calls: Call[] = []
  const endpoint = { isDown: true }
  const handler = defineHandler('notify', {
    events: bank,
    on: {
      Credited: ({ key, data }, { attempt }) => {
        calls.push({ key, amount: data.amount, attempt })
        if (endpoint.isDown) throw failure.transient('down')
      },
    },
    failure: definePolicy({ transient: retry({ attempts: 3, backoff: fixed('1s') }).then(park), outage: false }),
    breaker: { opens: { failures: 1 }, cooldown: '10m', key: byEndpoint },
    ...options,
  })
  const engine = createEngine({ store, subscriptions: [handler], logger: silent, poll: '20ms' })
  return {
    engine,
    handler,
    calls,
    endpoint,
    callsOf: (key) => calls.filter((call) => call.key === key).map(({ amount }) => amount),
    lanes: async () => {
      const partitions = await other.subscriptions.partitions('notify')
      const held = partitions.map(({ partition }) => other.letters.heldLanes('notify', partition))
      return (await Promise.all(held)).flat().toSorted((a, b) => (a.lane < b.lane ? -1 : 1))
    },
    log: createLog({ store, events: bank }),
    operator: createOperator({ store: other, subscriptions: [handler], by: 'ada' }),
    [Symbol.asyncDispose]: async () => {
      await engine.stop()
    },
  }
}

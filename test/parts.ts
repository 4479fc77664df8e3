import { createBreakers } from '../src/breaker/breakers.ts'
import { EngineEmitter } from '../src/engine/events.ts'
import { ExclusiveRun } from '../src/engine/crash/exclusive-run.ts'
import type { Store, Subscription } from '../src/index.ts'
import { systemChannel } from '../src/runtime/system.ts'
import type { World } from './fixtures.ts'

// What a runner or a worker is made of, for the tests of those: a real store, which does something else where a test says so.

export const leaseMs = 9_000

export function createParts({ store, runtime }: World, subscription: Subscription, only?: 'letters') {
  /** What is done instead of what the store would do. */
  const instead: Partial<Store['subscriptions']> = {}
  /** What was asked of it. */
  const calls: string[] = []
  const subscriptions = new Proxy(store.subscriptions, {
    get: (target, key: keyof Store['subscriptions']) => {
      const call = instead[key] ?? target[key]
      return (...args: never[]) => {
        calls.push(key)
        return (call as (...args: never[]) => unknown)(...args)
      }
    },
  })
  const logged: [object, string][] = []
  const note = (fields: object, message: string) => void logged.push([fields, message])
  const logger = { info: note, warn: note, error: note }
  const settings = { owner: 'me', instance: 'me-1', leaseMs, pollMs: 400, beatMs: 250 }
  const parts = {
    store: { ...store, subscriptions },
    subscription,
    runtime,
    settings: { ...settings, pageEvents: 10, pageBytes: 1_000_000, cacheBytes: 1_000_000, only, allowEffects: false },
    emitter: new EngineEmitter(logger, systemChannel),
    logger,
    breakers: createBreakers({ store, processId: 'p', runtime }),
    exclusiveRun: new ExclusiveRun(runtime.clock),
    watchdog: undefined,
  }
  const claimBy = (owner: string, partition = 0) =>
    store.subscriptions.claim({ subscription: subscription.name, partition, owner, leaseMs })
  return { parts, instead, calls, logged, claimBy }
}

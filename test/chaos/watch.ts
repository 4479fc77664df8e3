import { type Store, StoreError } from 'holdfast'
import type { EngineReport } from './engine.ts'

type Subscriptions = Store['subscriptions']
type Commit = Parameters<Subscriptions['commit']>[0]
type CommitOutcome = Awaited<ReturnType<Subscriptions['commit']>>

/** The same store, seen from outside: which commits it refused, and which ones had no answer and happened all the same. */
export function watchCommits(store: Store, tell: (report: EngineReport) => void): Store {
  const { subscriptions } = store
  const unanswered = new Map<string, Commit>()

  const watched: Partial<Subscriptions> = {
    commit: (commit) =>
      watch(
        () => commit,
        () => subscriptions.commit(commit),
      ),
    perform: (lease, work) => {
      let last: Commit | undefined
      return watch(
        () => last,
        () =>
          subscriptions.perform(lease, async (tx) => {
            last = undefined
            last = await work(tx)
            return last
          }),
      )
    },
    // An engine that had no answer reads the state before anything else; what it reads is the answer.
    load: async (subscription, partition) => {
      const state = await subscriptions.load(subscription, partition)
      const commit = take(subscription, partition)
      if (commit && commit.to.position > commit.from && state?.epoch === commit.lease.epoch) {
        const happened = state.checkpoint.position === commit.to.position
        tell({ kind: 'unanswered', happened, subscription, partition, at: now() })
      }
      return state
    },
  }

  async function watch(commitOf: () => Commit | undefined, run: () => Promise<CommitOutcome>): Promise<CommitOutcome> {
    try {
      const result = await run()
      const commit = commitOf()
      if (result.outcome === 'fenced' && commit) tell({ kind: 'refused', ...placeOf(commit), at: now() })
      return result
    } catch (error) {
      const commit = commitOf()
      if (commit && error instanceof StoreError) unanswered.set(nameOf(commit), commit)
      throw error
    }
  }

  function take(subscription: string, partition: number): Commit | undefined {
    const name = `${subscription}/${partition}`
    const commit = unanswered.get(name)
    unanswered.delete(name)
    return commit
  }

  return replace(store, { subscriptions: replace(subscriptions, watched) })
}

function placeOf({ lease: { subscription, partition } }: Commit) {
  return { subscription, partition }
}

function nameOf({ lease: { subscription, partition } }: Commit): string {
  return `${subscription}/${partition}`
}

function now(): number {
  return performance.timeOrigin + performance.now()
}

/** Works on classes with private fields as well, which a copy would not. */
function replace<T extends object>(target: T, parts: Partial<T>): T {
  return new Proxy(target, {
    get: (_, name) => {
      const value: unknown = Reflect.get(name in parts ? parts : target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

import type { Consumer } from '../../subscription/subscription.ts'
import { explain, type OutsideCall, OutsideWatch } from '../kit/outside.ts'
import { watchedHandler, watchedProjection } from '../kit/watched.ts'

/** A watch for each subscription of an app, so that code that uses the clock or randomness is named. */
export class Watches implements Disposable {
  readonly #folds = new Map<string, OutsideWatch>()
  readonly #handlers = new Map<string, OutsideWatch>()

  over(consumer: Consumer): Consumer {
    switch (consumer.kind) {
      case 'fold':
        return watchedProjection(consumer, open(this.#folds, consumer.name))
      case 'handler':
        return watchedHandler(consumer, open(this.#handlers, consumer.name))
      default:
        return consumer
    }
  }

  /** The first fold that depends on more than its events, and on what. For a fold this is a failure. */
  get guiltyFold(): readonly string[] | undefined {
    const [name, watch] = [...this.#folds].find(([, { calls }]) => calls.length > 0) ?? []
    return watch && [`The fold of ${name} depends on more than its events.`, ...explain(watch.calls, 'fold')]
  }

  /** Calls that handlers made outside the simulation. */
  get explained(): readonly string[] {
    return explain(this.#calls, 'handler')
  }

  get #calls(): readonly OutsideCall[] {
    return [...this.#handlers.values()].flatMap(({ calls }) => calls)
  }

  [Symbol.dispose](): void {
    for (const watch of [...this.#folds.values(), ...this.#handlers.values()]) watch[Symbol.dispose]()
  }
}

function open(watches: Map<string, OutsideWatch>, name: string): OutsideWatch {
  const watch = watches.get(name) ?? new OutsideWatch()
  watches.set(name, watch)
  return watch
}

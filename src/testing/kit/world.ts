import type { EventCatalog } from '../../event/catalog.ts'
import type { Handler } from '../../handler/handler.ts'
import type { Projection } from '../../projection/projection.ts'
import type { Mortality } from '../mortal.ts'

/**
 * What is outside of a handler: whom it calls, and what can be seen of that afterwards. It is made anew for each run, so that runs can be
 * compared.
 */
export interface World<D> {
  /**
   * Given to the function that makes the handler. Each call of theirs is a place where the process may die: after it had its effect, before the
   * handler hears of it.
   */
  readonly dependencies?: D
  /** What a key has come to, out there: values that can be cloned. */
  observe(key: string): unknown
}

/** A consumer, or what makes one of what it calls. */
export type Subject<C extends EventCatalog, D> =
  | Projection<unknown, unknown, C>
  | Handler<C>
  | ((dependencies: D) => Handler<C>)

/** A call to the outside, as it is named in messages: `send`, or `mail.send`. */
export type Called = (name: string) => void

/** The process died meanwhile. Nobody hears of this; it only keeps code that goes on from doing so. */
class DeadError extends Error {
  override readonly name = 'DeadError'
}

export interface CallOptions {
  readonly mortality: Mortality
  /** Told when a call had its effect. */
  readonly called: Called
  /** Waited for before an answer is heard. */
  readonly late: () => Promise<void> | undefined
}

/** The same dependencies, seen from a process that can die: the calls of one that is dead have no effect any more. */
export function reached<D>(dependencies: D, options: CallOptions): D {
  return standIn(dependencies, (work, name) => callable(work, options, name))
}

/** What is called in place of a function of the dependencies. */
type Instead = (work: (...args: unknown[]) => unknown, name: string) => (...args: unknown[]) => unknown

/** The same dependencies, of which each function is another one: also those of what is in them, and where they are one themselves. */
export function standIn<D>(dependencies: D, instead: Instead, path = ''): D {
  if ((typeof dependencies !== 'object' && typeof dependencies !== 'function') || dependencies === null)
    return dependencies
  const target: object = dependencies
  const memberOf = (name: string | symbol): unknown => {
    const value: unknown = Reflect.get(target, name)
    if (typeof name === 'symbol' || value === null) return value
    if (typeof value === 'object') return isOwn(value) ? standIn(value, instead, join(path, name)) : value
    const isCall = typeof value === 'function' && name !== 'constructor' && !Object.hasOwn(Object.prototype, name)
    return isCall ? instead((...args) => Reflect.apply(value, target, args) as unknown, join(path, name)) : value
  }
  // A proxy has to show what is frozen as it is; so it stands for something that isn't.
  const shadow: object = typeof target === 'function' ? () => undefined : {}
  return new Proxy(shadow, {
    get: (_, name) => memberOf(name),
    set: (_, name, value) => Reflect.set(target, name, value),
    has: (_, name) => Reflect.has(target, name),
    getPrototypeOf: () => Object.getPrototypeOf(target) as object | null,
    ownKeys: () => Reflect.ownKeys(target),
    getOwnPropertyDescriptor: (_, name) => {
      const own = Object.getOwnPropertyDescriptor(target, name)
      return own && { value: memberOf(name), enumerable: own.enumerable ?? false, configurable: true, writable: true }
    },
    // Only called where the target is a function itself.
    apply: (_, self, args: unknown[]) => {
      const work = target as (...all: unknown[]) => unknown
      return instead((...all) => Reflect.apply(work, self, all), join(path, work.name))(...args)
    },
  }) as D
}

/** Plain objects and instances of the user's own classes; a Map or a Date has insides that no proxy can stand for. */
function isOwn(value: object): boolean {
  return Object.prototype.toString.call(value) === '[object Object]'
}

function callable(work: (...args: unknown[]) => unknown, { mortality, called, late }: CallOptions, name: string) {
  return (...args: unknown[]): unknown => {
    if (mortality.isDead) throw new DeadError(`The process is dead: ${name} can't be called.`)
    const answer = work(...args)
    if (!(answer instanceof Promise)) {
      called(name)
      if (mortality.isDead) throw new DeadError(`The process died after it had called ${name}.`)
      return answer
    }
    const told = async () => {
      const [result] = await Promise.allSettled([answer])
      called(name)
      if (!mortality.isDead) await late()
      return result.status === 'rejected' ? Promise.reject(result.reason) : (result.value as unknown)
    }
    return mortality.answer(told())
  }
}

function join(path: string, name: string): string {
  return [path, name].filter((part) => part !== '').join('.')
}

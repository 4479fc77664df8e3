import type { EventCatalog } from '../../event/catalog.ts'
import type { Handler } from '../../handler/handler.ts'
import type { Projection } from '../../projection/projection.ts'
import type { Mortality } from '../mortal.ts'

/**
 * The environment of a handler: the services that it calls, and what can be observed of them afterwards. Created for each run, so
 * that runs can be compared.
 */
export interface World<D> {
  /**
   * Passed to the function that creates the handler. The process may die at each call: after the effect, before the handler gets
   * the answer.
   */
  readonly dependencies?: D
  /** The effects for a key: values that can be cloned. */
  observe(key: string): unknown
}

/** A consumer, or a function that creates one from its dependencies. */
export type Subject<C extends EventCatalog, D> =
  | Projection<unknown, unknown, C>
  | Handler<C>
  | ((dependencies: D) => Handler<C>)

/** Called with the name of a call to the outside: `send`, or `mail.send`. */
export type Called = (name: string) => void

/** The process died. This error is not reported; it stops code that would otherwise continue. */
class DeadError extends Error {
  override readonly name = 'DeadError'
}

export interface CallOptions {
  readonly mortality: Mortality
  /** Called when a call had its effect. */
  readonly called: Called
  /** Awaited before an answer is delivered. */
  readonly late: () => Promise<void> | undefined
}

/** The same dependencies, called from a process that can die: calls of a dead process have no effect. */
export function reached<D>(dependencies: D, options: CallOptions): D {
  return standIn(dependencies, (work, name) => callable(work, options, name))
}

/** Called instead of a function of the dependencies. */
type Instead = (work: (...args: unknown[]) => unknown, name: string) => (...args: unknown[]) => unknown

/**
 * The same dependencies with every function replaced, also those of nested objects, and the dependencies themselves if they are a
 * function.
 */
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
  // A proxy must show frozen properties unchanged; so its target is another object.
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
    // Only called if the target is a function.
    apply: (_, self, args: unknown[]) => {
      const work = target as (...all: unknown[]) => unknown
      return instead((...all) => Reflect.apply(work, self, all), join(path, work.name))(...args)
    },
  }) as D
}

/** Plain objects and instances of user classes; a Map or a Date has internal slots that a proxy can't replace. */
function isOwn(value: object): boolean {
  return Object.prototype.toString.call(value) === '[object Object]'
}

function callable(work: (...args: unknown[]) => unknown, { mortality, called, late }: CallOptions, name: string) {
  return (...args: unknown[]): unknown => {
    if (mortality.isDead) throw new DeadError(`The process is dead: ${name} can't be called.`)
    const answer = work(...args)
    if (!(answer instanceof Promise)) {
      called(name)
      if (mortality.isDead) throw new DeadError(`The process died after the call of ${name}.`)
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

import type { Store } from '../../store.ts'
import type { Link } from '../link.ts'

const ports = ['log', 'subscriptions', 'letters', 'rows', 'inbox', 'breakers', 'redrives', 'rebuilds', 'audit'] as const

/**
 * A store that is reached over a link, by whole calls: for a store in this process, where nothing can happen between the
 * statements of a call.
 */
export function linked(store: Store, link: Link): Store {
  const far = Object.fromEntries(ports.map((name) => [name, linkedPort(name, store[name], link)]))
  return {
    dialect: store.dialect,
    ...(far as Pick<Store, (typeof ports)[number]>),
    snapshot: (read) => link.call('snapshot', () => store.snapshot(read)),
    // Simulated processes come and go; the store stays open.
    close: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }
}

function linkedPort<Port extends object>(name: string, port: Port, link: Link): Port {
  return new Proxy(port, {
    get: (target, method) => {
      const value: unknown = Reflect.get(target, method)
      if (typeof value !== 'function') return value
      const own = value as (...args: unknown[]) => unknown
      if (method === 'onAppend' || method === 'onRelease') {
        return (wake: () => void) => own.call(target, () => link.hint(method, wake))
      }
      return (...args: unknown[]) => link.call(`${name}.${String(method)}`, () => own.apply(target, args), args)
    },
  })
}

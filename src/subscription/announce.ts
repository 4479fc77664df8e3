import type { Store } from '../store.ts'
import type { Pause } from './subscription-store.ts'

/** What an operator has just done to a subscription, or to a breaker that any of them may wait for. */
export type Announcement =
  | { readonly act: 'pause'; readonly subscription: string; readonly pause: Pause }
  | { readonly act: 'resume' | 'reset'; readonly subscription: string }
  | { readonly act: 'breaker' }

type Listener = (announcement: Announcement) => void

const listeners = new WeakMap<Store, Set<Listener>>()

/**
 * Tells the engines of this process that share the store object, so that they act on it before their next heartbeat. A hint: the store has
 * it already, and engines elsewhere read it there.
 */
export function announce(store: Store, announcement: Announcement): void {
  for (const listener of listeners.get(store) ?? []) listener(announcement)
}

/** Returns the function that ends the listening. */
export function onAnnouncement(store: Store, listener: Listener): () => void {
  const known = listeners.get(store) ?? new Set()
  listeners.set(store, known)
  known.add(listener)
  return () => void known.delete(listener)
}

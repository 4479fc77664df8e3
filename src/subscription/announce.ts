import type { Store } from '../store.ts'
import type { Pause } from './subscription-store.ts'

/** An act of an operator on a subscription, or on a breaker that any subscription may wait for. */
export type Announcement =
  | { readonly act: 'pause'; readonly subscription: string; readonly pause: Pause }
  | { readonly act: 'resume' | 'reset'; readonly subscription: string }
  | { readonly act: 'breaker' }

type Listener = (announcement: Announcement) => void

const listeners = new WeakMap<Store, Set<Listener>>()

/**
 * Notifies the engines of this process that share the store object, so that they react before their next heartbeat. A hint: the act is
 * already in the store, where other processes read it.
 */
export function announce(store: Store, announcement: Announcement): void {
  for (const listener of listeners.get(store) ?? []) listener(announcement)
}

/** Returns a function that removes the listener. */
export function onAnnouncement(store: Store, listener: Listener): () => void {
  const known = listeners.get(store) ?? new Set()
  listeners.set(store, known)
  known.add(listener)
  return () => void known.delete(listener)
}

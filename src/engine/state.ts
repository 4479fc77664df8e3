import type { StandstillReason } from './handling/flow.ts'

/**
 * What a subscription is doing. `starting` until this process owns it (`owner` says who does), then `catching-up` until it
 * reaches the head of its source, then `live`. `paused` by an operator, `blocked` by the store, by what its handler needs, or by
 * an event that everything behind it has to wait for, for as long as that lasts, `failed` by something that waiting can't fix.
 *
 *     starting ──► catching-up ◄──► live        any of these ──► paused ──► catching-up
 *         ▲             │                        any of these ──► blocked ──► catching-up
 *         └── fenced ───┘                        any of these ──► stopped | failed
 */
export type SubscriptionState =
  | { readonly state: 'starting'; readonly since: number; readonly owner: string | undefined }
  | { readonly state: 'catching-up'; readonly since: number }
  | { readonly state: 'live'; readonly since: number }
  | { readonly state: 'paused'; readonly since: number; readonly reason: string }
  | {
      readonly state: 'blocked'
      readonly since: number
      /** The store, a live version that is not this process's, or why a handler's partition stands still. */
      readonly by: 'store' | 'version' | StandstillReason
      readonly error: unknown
      /** How often it was tried meanwhile; nothing of that counts against any event. */
      readonly attempts: number
      /** In milliseconds since 1970; undefined where it goes on only when an operator acts. */
      readonly retryAt: number | undefined
      /** How many lanes failed alike, where that is why. */
      readonly lanes?: number | undefined
    }
  | { readonly state: 'stopped'; readonly since: number }
  | { readonly state: 'failed'; readonly since: number; readonly error: unknown }

type WithoutSince<State> = State extends SubscriptionState ? Omit<State, 'since'> : never
export type NextState = WithoutSince<SubscriptionState>

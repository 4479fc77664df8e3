/**
 * What a subscription is doing. `starting` until this process owns it (`owner` says who does), then `catching-up` until it
 * reaches the head of its source, then `live`. `paused` by a person, `blocked` by the store for as long as that lasts, `failed`
 * by something that waiting can't mend.
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
      readonly error: unknown
      readonly attempts: number
      readonly retryAt: number
    }
  | { readonly state: 'stopped'; readonly since: number }
  | { readonly state: 'failed'; readonly since: number; readonly error: unknown }

type WithoutSince<State> = State extends SubscriptionState ? Omit<State, 'since'> : never
export type NextState = WithoutSince<SubscriptionState>

/** Why a partition is blocked: several lanes fail alike, the policy blocks it, or the handler's own breaker is open. */
export type StandstillReason = 'outage' | 'block' | 'pause' | 'breaker' | 'order'

/**
 * The state of a subscription. `starting` until this process owns a partition (`owner` names the current owner), then `catching-up`
 * until it reaches the head of its source, then `live`. `paused` by an operator. `blocked` while the store fails, while a service that
 * its handler needs fails, or while a parked event blocks the partition. `failed` if waiting can't fix the error.
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
      /** The store, another live version, or the reason why a handler's partition is blocked. */
      readonly by: 'store' | 'version' | StandstillReason
      readonly error: unknown
      /** The number of tries since then. They do not count against any event. */
      readonly attempts: number
      /** In milliseconds since 1970; undefined if only an operator can continue it. */
      readonly retryAt: number | undefined
      /** The number of lanes that failed alike, if that is the reason. */
      readonly lanes?: number | undefined
    }
  | { readonly state: 'stopped'; readonly since: number }
  | { readonly state: 'failed'; readonly since: number; readonly error: unknown }

type WithoutSince<State> = State extends SubscriptionState ? Omit<State, 'since'> : never
export type NextState = WithoutSince<SubscriptionState>

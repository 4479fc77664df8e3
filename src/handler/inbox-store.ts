/** That something was done, so that it is not done again. Written by `SubscriptionStore.commit`, together with the outcome. */
export interface InboxMark {
  /** What it was, in the handler's own words: an id, or what its `dedupe.by` made of the event. */
  readonly key: string
  /** JSON; null where there was none, or where it was too large to keep. */
  readonly result: string | null
  /** Milliseconds since 1970; undefined for ever. */
  readonly until: number | undefined
}

/** Reads marks, and sweeps those whose time is over. */
export interface InboxStore {
  /** Those of these keys that are there and whose time is not over. */
  find(subscription: string, keys: readonly string[], now: number): Promise<ReadonlyMap<string, InboxMark>>
  /** Takes away some whose time is over; how many. */
  sweep(now: number, most: number): Promise<number>
}

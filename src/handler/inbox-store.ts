/** Records that an event was handled. `SubscriptionStore.commit` writes it together with the outcome. */
export interface InboxMark {
  /** The id of the event, or the value that `dedupe.by` returned for it. */
  readonly key: string
  /** The result as JSON. Null if there was none, or if it was too large to store. */
  readonly result: string | null
  /** Milliseconds since 1970. Undefined: no expiry. */
  readonly until: number | undefined
}

/** Reads marks and removes expired ones. */
export interface InboxStore {
  /** The marks of these keys that exist and have not expired. */
  find(subscription: string, keys: readonly string[], now: number): Promise<ReadonlyMap<string, InboxMark>>
  /** Removes some expired marks and returns their number. */
  sweep(now: number, most: number): Promise<number>
}

/**
 * How a process reaches what is outside of it. A request goes there, has its effect, and an answer comes back; a simulated link can lose
 * either, be slow, or be cut together with the process. So whoever calls knows of the effect only what the answer says: when
 * `call` throws, it may have happened or not.
 */
export interface Link {
  /** `what` names the call, such as `subscriptions.commit`, and `about` is what was asked, for those who watch. */
  call<T>(what: string, effect: () => T | Promise<T>, about?: readonly unknown[]): Promise<T>
  /** Something that the other side says unasked. It may be late, and it may never come. */
  hint(what: string, deliver: () => void): void
}

/** Everything arrives, and at once. */
export const directLink: Link = {
  call: async (_what, effect) => effect(),
  hint: (_what, deliver) => deliver(),
}

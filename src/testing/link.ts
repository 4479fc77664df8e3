/**
 * How a process reaches the outside. A request is sent, has its effect, and an answer comes back; a simulated link can lose
 * either, be slow, or end with the process. So the caller knows of the effect only from the answer: if `call` throws, the effect
 * may or may not have happened.
 */
export interface Link {
  /** `what` names the call, such as `subscriptions.commit`, and `about` is its argument, for observers. */
  call<T>(what: string, effect: () => T | Promise<T>, about?: readonly unknown[]): Promise<T>
  /** A notification of the other side. It may be late, and it may never arrive. */
  hint(what: string, deliver: () => void): void
}

/** Everything arrives at once. */
export const directLink: Link = {
  call: async (_what, effect) => effect(),
  hint: (_what, deliver) => deliver(),
}

import type { Event } from '../../event/event.ts'
import type { HandlerContext, HandlerFunction } from '../../handler/handler.ts'

export type AttemptResult =
  | { readonly result: 'succeeded'; readonly value: unknown }
  | { readonly result: 'failed'; readonly error: unknown }

/**
 * One try of a handler at an event. It ends when the handler does, or when it is given up, because its time is up or because nobody
 * waits for it any longer; whichever is first. What comes later is heard by nobody, and can't end the process by being rejected.
 */
export class Attempt {
  readonly #ended = Promise.withResolvers<AttemptResult>()
  #controller: AbortController | undefined
  #givenUp: { readonly reason: unknown } | undefined

  /** Made when it is first asked for: most handlers never do, and there are thousands of attempts in a second. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#givenUp) this.#controller.abort(this.#givenUp.reason)
    return this.#controller.signal
  }

  /** Never rejects. */
  run(work: HandlerFunction, event: Event, ctx: HandlerContext): Promise<AttemptResult> {
    void tried(work, event, ctx).then(this.#ended.resolve)
    return this.#ended.promise
  }

  giveUp(reason: unknown): void {
    this.#givenUp ??= { reason }
    this.#controller?.abort(reason)
    this.#ended.resolve({ result: 'failed', error: reason })
  }
}

async function tried(work: HandlerFunction, event: Event, ctx: HandlerContext): Promise<AttemptResult> {
  try {
    return { result: 'succeeded', value: await work(event, ctx) }
  } catch (error) {
    return { result: 'failed', error }
  }
}

import type { Event } from '../../event/event.ts'
import type { HandlerContext, HandlerFunction } from '../../handler/handler.ts'

export type AttemptResult =
  | { readonly result: 'succeeded'; readonly value: unknown }
  | { readonly result: 'failed'; readonly error: unknown }

/**
 * One attempt of a handler at an event. It ends when the handler ends, or when the attempt is abandoned (timeout, or lost partition),
 * whichever is first. A later result is ignored, and a later rejection can't crash the process.
 */
export class Attempt {
  readonly #ended = Promise.withResolvers<AttemptResult>()
  #controller: AbortController | undefined
  #givenUp: { readonly reason: unknown } | undefined

  /** Created at first use: most handlers never use it, and there are thousands of attempts per second. */
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

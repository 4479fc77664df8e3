import type { Event } from '../../event/event.ts'
import type { HandlerContext, HandlerFunction } from '../../handler/handler.ts'
import type { Timers } from '../../runtime/ports.ts'

export type AttemptResult =
  | { readonly result: 'succeeded'; readonly value: unknown }
  | { readonly result: 'failed'; readonly error: unknown }

/**
 * One try of a handler at an event. It ends when the handler does, when its time is up, or when it is abandoned, whichever is
 * first; what comes later is heard by nobody, and can't end the process by being rejected.
 */
export class Attempt {
  readonly #controller = new AbortController()
  #abandoned: ((result: AttemptResult) => void) | undefined

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Never rejects. */
  async run(
    work: HandlerFunction,
    event: Event,
    ctx: HandlerContext,
    timeoutMs: number,
    timers: Timers,
  ): Promise<AttemptResult> {
    const over = new AbortController()
    const ended = new Promise<AttemptResult>((resolve) => {
      this.#abandoned = resolve
    })
    const late = async (): Promise<AttemptResult> => {
      await timers.sleep(timeoutMs, over.signal)
      if (over.signal.aborted) return ended
      const error = new DOMException(`The handler took longer than ${timeoutMs} ms.`, 'TimeoutError')
      this.#controller.abort(error)
      return { result: 'failed', error }
    }
    const result = await Promise.race([tried(work, event, ctx), late(), ended])
    over.abort()
    return result
  }

  /** Nobody waits for it any longer. */
  abandon(reason: unknown): void {
    this.#controller.abort(reason)
    this.#abandoned?.({ result: 'failed', error: reason })
  }
}

async function tried(work: HandlerFunction, event: Event, ctx: HandlerContext): Promise<AttemptResult> {
  try {
    return { result: 'succeeded', value: await work(event, ctx) }
  } catch (error) {
    return { result: 'failed', error }
  }
}

import { HoldfastError } from '../errors.ts'
import type { PgClient } from './driver.ts'
import { troubleOf } from './errors.ts'
import { endsTransaction, leavesTraces } from './transaction-words.ts'

type Callback = (error: unknown, result?: unknown) => void

interface Submittable {
  handleError?: (error: unknown, ...rest: unknown[]) => unknown
}

/** The same connection, seen with all the forms of its method. */
interface RawClient {
  query(...args: readonly unknown[]): unknown
}

/**
 * The connection as the user's code gets it: everything that pg's client can, but the transaction on it stays ours. It can be given
 * to a query builder as its client, or as its pool, and then lends itself out.
 */
export class Handle {
  /** What the user's code gets. */
  readonly client: unknown
  /** Whether the session may not be what it was before. */
  isTouched = false
  readonly #target: RawClient
  readonly #pending = new Set<Promise<unknown>>()
  readonly #errors = new WeakSet<object>()
  #failure: unknown
  #trouble: unknown
  #isOver = false

  constructor(target: PgClient) {
    this.#target = target
    const refuse = (what: string) => () => {
      throw broken(`The connection of a transaction was ${what}.`, 'It is given back when the transaction ends.')
    }
    const common = { connect: async () => lent, end: refuse('closed') }
    const lent = this.#wrap({ ...common, release: () => undefined })
    this.client = this.#wrap({ ...common, release: refuse('given back') })
  }

  /** The first error since the last statement that worked: what the transaction failed of, if it did. */
  get failure(): unknown {
    return this.#failure
  }

  /** The first error that was the store's doing, whatever the user's code made of it. */
  get trouble(): unknown {
    return this.#trouble
  }

  /** Whether an error comes from a statement on this connection. */
  isOurs(error: unknown): boolean {
    return typeof error === 'object' && error !== null && this.#errors.has(error)
  }

  /** Waits for what was begun and not waited for: it would fail in the middle of something else. */
  async settle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending)
  }

  forget(): void {
    this.#failure = undefined
    this.#trouble = undefined
  }

  /** From here on the connection is somebody else's. */
  close(): void {
    this.#isOver = true
  }

  #wrap(own: Record<string, unknown>): unknown {
    const methods: Record<string | symbol, unknown> = { ...own, query: (...args: unknown[]) => this.#query(args) }
    return new Proxy(this.#target, {
      get: (target, name) => {
        if (Object.hasOwn(methods, name)) return methods[name]
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function' || name === 'constructor') return value
        methods[name] = value.bind(target)
        return methods[name]
      },
    })
  }

  /** In all the forms of pg: a text or an object, with values or without, with a callback or for a promise. */
  #query(args: readonly unknown[]): unknown {
    const [query, ...rest] = args
    const isSubmittable = typeof (query as { submit?: unknown } | null | undefined)?.submit === 'function'
    const own = (query as { callback?: unknown } | null | undefined)?.callback
    const callback = [...rest, isSubmittable ? undefined : own].find((arg) => typeof arg === 'function') as
      | Callback
      | undefined
    const error = this.#objection(textOf(query))
    if (isSubmittable) {
      if (error) throw error
      this.#overhear(query as Submittable)
      return this.#target.query(...args)
    }
    const plain = typeof query === 'object' && query !== null && own ? { ...query, callback: undefined } : query
    const values = rest.filter((arg) => typeof arg !== 'function')
    const result = error ? Promise.reject(error) : this.#watch(this.#target.query(plain, ...values) as Promise<unknown>)
    if (!callback) return result
    void answer(result, callback)
    return undefined
  }

  /** A query object tells its errors to itself alone. */
  #overhear(query: Submittable): void {
    const own = query.handleError
    if (typeof own !== 'function') return
    query.handleError = (error, ...rest) => {
      this.#fail(error)
      return own.call(query, error, ...rest)
    }
  }

  #objection(text: string | undefined): HoldfastError | undefined {
    if (this.#isOver) return broken('A statement came after its transaction was over.', 'Wait for every statement.')
    if (text === undefined) return broken('A query without a text can not be checked.', 'Use the text form.')
    if (leavesTraces(text)) this.isTouched = true
    if (!endsTransaction(text)) return undefined
    return broken(
      'A statement would have ended the transaction of its event.',
      'Holdfast begins and commits it; use SAVEPOINT where you need a transaction within it.',
    )
  }

  #watch(result: Promise<unknown>): Promise<unknown> {
    const watched = this.#note(result)
    this.#pending.add(watched)
    // Who doesn't wait for it hears of it all the same, when the event is done; it need not end the process.
    watched.catch(() => undefined).finally(() => this.#pending.delete(watched))
    return watched
  }

  #fail(error: unknown): void {
    this.#failure ??= error
    if (typeof error === 'object' && error !== null) this.#errors.add(error)
    const trouble = troubleOf(error)
    if (trouble !== undefined && trouble !== 'refused') this.#trouble ??= error
  }

  async #note(result: Promise<unknown>): Promise<unknown> {
    try {
      const done = await result
      this.#failure = undefined
      return done
    } catch (error) {
      this.#fail(error)
      throw error
    }
  }
}

async function answer(result: Promise<unknown>, callback: Callback): Promise<void> {
  try {
    const done = await result
    queueMicrotask(() => callback(null, done))
  } catch (error) {
    queueMicrotask(() => callback(error))
  }
}

function textOf(query: unknown): string | undefined {
  if (typeof query === 'string') return query
  if (typeof query !== 'object' || query === null) return undefined
  const { text, cursor } = query as { text?: unknown; cursor?: { text?: unknown } }
  const found = text ?? cursor?.text
  return typeof found === 'string' ? found : undefined
}

export function broken(what: string, hint: string, cause?: unknown): HoldfastError {
  return new HoldfastError('TRANSACTION_BROKEN', what, { hint, ...(cause === undefined ? {} : { cause }) })
}

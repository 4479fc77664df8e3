import { HoldfastError } from '../../errors.ts'
import type { PgClient } from './driver.ts'
import { troubleOf } from './errors.ts'
import { endsTransaction, leavesTraces } from './transaction-words.ts'

type Callback = (error: unknown, result?: unknown) => void

interface Submittable {
  handleError?: (error: unknown, ...rest: unknown[]) => unknown
}

/** The same connection, with all overloads of its method. */
interface RawClient {
  query(...args: readonly unknown[]): unknown
}

/**
 * The connection that user code gets: everything that pg's client can do, but the transaction stays ours. It can be passed to a
 * query builder as a client or as a pool.
 */
export class Handle {
  /** What user code gets. */
  readonly client: unknown
  /** Whether session settings may have changed. */
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
      throw broken(`The connection of a transaction was ${what}.`, 'Holdfast releases it when the transaction ends.')
    }
    const common = { connect: async () => lent, end: refuse('closed') }
    const lent = this.#wrap({ ...common, release: () => undefined })
    this.client = this.#wrap({ ...common, release: refuse('released') })
  }

  /** The first error since the last successful statement: the reason if the transaction failed. */
  get failure(): unknown {
    return this.#failure
  }

  /** The first error of the store, even if user code caught it. */
  get trouble(): unknown {
    return this.#trouble
  }

  /** Whether an error comes from a statement on this connection. */
  isOurs(error: unknown): boolean {
    return typeof error === 'object' && error !== null && this.#errors.has(error)
  }

  /** Waits for statements that were not awaited: they would fail in the middle of later work. */
  async settle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending)
  }

  forget(): void {
    this.#failure = undefined
    this.#trouble = undefined
  }

  /** After this the connection belongs to another user. */
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

  /** All forms of pg: a text or an object, with or without values, with a callback or a promise. */
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

  /** A query object reports its errors only to itself. */
  #overhear(query: Submittable): void {
    const own = query.handleError
    if (typeof own !== 'function') return
    query.handleError = (error, ...rest) => {
      this.#fail(error)
      return own.call(query, error, ...rest)
    }
  }

  #objection(text: string | undefined): HoldfastError | undefined {
    if (this.#isOver) return broken('A statement was sent after its transaction ended.', 'Await every statement.')
    if (text === undefined) return broken('A query without a text cannot be checked.', 'Use the text form.')
    if (leavesTraces(text)) this.isTouched = true
    if (!endsTransaction(text)) return undefined
    return broken(
      'A statement would have ended the transaction of its event.',
      'Holdfast begins and commits it; use SAVEPOINT for a nested transaction.',
    )
  }

  #watch(result: Promise<unknown>): Promise<unknown> {
    const watched = this.#note(result)
    this.#pending.add(watched)
    // If user code does not await it, the error is reported when the event is done; an unhandled rejection must not end the
    // process.
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

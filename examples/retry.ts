import { exponential, retryWithBackoff, type RetryWithBackoffOptions } from 'holdfast'

export class RatesError extends Error {
  readonly response: Response

  constructor(response: Response) {
    super(`The rates service answered ${response.status}.`)
    this.response = response
  }
}
export class UnknownCurrency extends Error {}

/** The options of the caller: a signal; in tests, virtual time. */
export async function rateOf(currency: string, ask: typeof fetch, options: RetryWithBackoffOptions): Promise<number> {
  return retryWithBackoff(
    async ({ signal }) => {
      const response = await ask(`https://rates.example/${currency}`, { signal })
      if (response.status === 204) throw new UnknownCurrency(currency)
      // The built-in rules read the status and the Retry-After: a 503 is retried, a 404 is not.
      if (!response.ok) throw new RatesError(response)
      return Number(await response.text())
    },
    {
      attempts: 5,
      backoff: exponential('200ms', { cap: '5s', jitter: 0.5 }),
      classify: (error) => (error instanceof UnknownCurrency ? 'permanent' : undefined),
      onRetry: ({ attempt, class: kind, waitMs }) => console.warn(`Attempt ${attempt}: ${kind}, again in ${waitMs} ms`),
      ...options,
    },
  )
}

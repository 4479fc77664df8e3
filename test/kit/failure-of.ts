import { AssertionError } from 'node:assert'

/** What a claim fails with. */
export async function failureOf(claim: Promise<void>): Promise<AssertionError> {
  const error: unknown = await claim.then(
    () => new Error('it holds'),
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof AssertionError)) throw error
  return error
}

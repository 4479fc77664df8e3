import { definePolicy, exponential, failure, park, pause, retry, skip } from 'holdfast'

export class CardDeclined extends Error {}

export const payments = definePolicy({
  name: 'payments',
  transient: retry({ attempts: 6, backoff: exponential('500ms', { cap: '1m', jitter: 0.5 }) }).then(park),
  dependency: pause({ failures: 10, for: '1m' }),
  types: { ReceiptWanted: { permanent: skip('the customer can ask again') } },
  rules: [(error) => (error instanceof CardDeclined ? 'permanent' : undefined)],
  budget: { retries: 100, per: '1m' },
})

/** A handler can set the class of a failure itself. */
export async function charge(account: { isTest: boolean; send: () => Promise<Response> }): Promise<void> {
  if (account.isTest) throw failure.skip('a test account')
  const answer = await account.send()
  if (answer.status === 402) throw new CardDeclined()
  if (answer.status === 423) throw failure.transient('The account is being changed.', { retryAfter: '10s' })
  if (answer.status === 530) throw failure.dependency('the card network')
  // The built-in rules read the status and the Retry-After of the response.
  if (!answer.ok) throw Object.assign(new Error('The bank said no.'), { response: answer })
}

// A handler performs side effects outside the database. This one sends receipts through an external mail service.
import {
  createEngine,
  createLog,
  defineEvents,
  defineHandler,
  definePolicy,
  delays,
  failure,
  park,
  retry,
} from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { z } from 'zod'

const shop = defineEvents({ OrderPaid: z.object({ email: z.string(), total: z.int() }) })

/** Simulates the mail service. It recognises repeated requests by their key, and is sometimes busy. */
const asked = new Set<string>()
async function post(
  mail: { to: string; total: number },
  key: string,
  attempt: number,
  _signal: AbortSignal,
): Promise<number> {
  if (mail.to === 'bob@busy.example' && attempt < 3) return 503
  if (!mail.to.includes('@')) return 422
  if (!asked.has(key)) console.log('mail to', mail.to, mail.total)
  asked.add(key)
  return 202
}

const receipts = defineHandler('receipts', {
  events: shop,
  on: {
    OrderPaid: async ({ data }, { idempotencyKey, attempt, signal, logger }) => {
      if (data.total === 0) throw failure.skip('a gift has no receipt')
      const status = await post({ to: data.email, total: data.total }, idempotencyKey, attempt, signal)
      // The built-in rules read `status`: 503 is transient and is retried, 422 is permanent.
      if (status >= 400) throw Object.assign(new Error(`The mail service said ${status}.`), { status })
      logger.info({ status }, 'sent')
      return status
    },
  },
  failure: definePolicy({
    transient: retry({ attempts: 5, backoff: delays(['50ms', '100ms', '1s', '1m']) }).then(park),
  }),
  breaker: { key: ({ data }) => data.email.split('@')[1] ?? 'nowhere', opens: { failures: 5 }, cooldown: '1m' },
  concurrency: 32,
  timeout: '10s',
  onError: (error, { key }, { attempt }) => console.log(key, 'attempt', attempt, 'failed:', (error as Error).message),
})

await using store = await createSqliteStore({ file: process.argv[2] ?? 'handler.db' })
const log = createLog({ store, events: shop })
const paid = (id: string, email: string, total: number) => ({ id, type: 'OrderPaid', data: { email, total } }) as const
await log.append('order-1', [paid('o1', 'ada@mail.example', 30)])
await log.append('order-2', [paid('o2', 'bob@busy.example', 20)]) // succeeds at the third attempt
await log.append('order-3', [paid('o3', 'carol@mail.example', 0)]) // skipped; the skip is recorded
await log.append('order-4', [paid('o4', 'dave', 10), paid('o5', 'dave@mail.example', 5)]) // o4 is parked; o5 is queued behind it

await using engine = createEngine({ store, subscriptions: [receipts] })
await engine.start()
await engine.drain()

for (const letter of await engine.letters({ subscription: 'receipts' })) {
  const why = letter.endedReason ?? letter.failure?.message ?? 'waits its turn'
  console.log(letter.event.id, letter.status, `attempts: ${letter.attempts.length}`, why)
}
const [status] = (await engine.status()).subscriptions
console.log(status?.state.state, status?.stored?.counts)

// Durations, filters, the options of an engine in a configuration, and those of retryWithBackoff.
import {
  createEngine,
  defineConfig,
  defineEvents,
  defineHandler,
  defineProjection,
  defineSubscription,
  retryWithBackoff,
} from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { z } from 'zod'

const events = defineEvents({ OrderPlaced: z.object({ total: z.number() }), LineAdded: z.object({ sku: z.string() }) })
const orders = defineProjection('orders', { events, initial: () => ({ total: 0 }), on: {} })

// error: Type '"15 seconds"' is not assignable to type 'number | `${number}
defineHandler('mails', { events, timeout: '15 seconds', on: {} })
// error: Type '"soon"' is not assignable to type 'number | `${number}
export const store = createSqliteStore({ file: 'a.db', busyTimeout: 'soon' })
// error: Type '"30 days"' is not assignable to type 'number |
createEngine({ store: await store, subscriptions: [orders], retention: '30 days' })

// error: "'. Did you mean '"OrderPlaced"'?
defineSubscription(orders, { filter: { types: ['OrderPlcd'] } })
const mails = defineHandler('mails', { events, on: {} })
// error: "'. Did you mean '"OrderPlaced"'?
defineSubscription(mails, { filter: { types: ['LineAdded', 'OrderPlcd'] } })

// error: 'store' does not exist in type
defineConfig({ engine: { store: await store } })
// error: Did you mean to write 'retention'?
defineConfig({ engine: { retentoin: '7d' } })

// error: Did you mean to write 'attempts'?
retryWithBackoff(() => 1, { atempts: 3 })
// error: Type 'string' is not assignable to type 'Backoff'.
retryWithBackoff(() => 1, { backoff: '1s' })
// error, 3 lines: Type '"fatal"' is not assignable to type '"
retryWithBackoff(() => 1, { classify: () => 'fatal' })
// error: Type 'string' is not assignable to type 'number'.
export const rate: Promise<number> = retryWithBackoff(() => 'a text')

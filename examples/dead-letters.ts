// A bug holds lanes. The operator inspects them, tries the fix in a dry run, edits one event, redrives the lanes and verifies the result.
import {
  createEngine,
  createLog,
  createOperator,
  defineEvents,
  defineProjection,
  payloadOf,
  redactFailure,
  shapeOf,
} from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { z } from 'zod'

const shop = defineEvents({ Sold: z.object({ sku: z.string(), price: z.number() }) })

// Release 1 fails for a price of 0; release 2 accepts it.
const sales = (release: 1 | 2) =>
  defineProjection('sales', {
    events: shop,
    initial: () => ({ sold: 0, revenue: 0 }),
    on: {
      Sold: ({ sold, revenue }, { data }) => {
        if (release === 1 && data.price === 0) throw new RangeError(`${data.sku} has no price`)
        if (data.price < 0) throw new RangeError(`${data.sku} has a price of ${data.price}`)
        return { sold: sold + 1, revenue: revenue + data.price }
      },
    },
  })

await using store = await createSqliteStore({ file: process.argv[2] ?? 'dead-letters.db' })
const log = createLog({ store, events: shop })
const sold = (sku: string, price: number) => ({ type: 'Sold', data: { sku, price } }) as const
await log.append('berlin', [sold('pen', 2), sold('gift', 0), sold('ink', 5)])
await log.append('paris', [sold('gift', 0)])
await log.append('rome', [sold('book', -12)])

const first = createEngine({ store, subscriptions: [sales(1)] })
await first.start()
await first.drain()
await first.stop()

// The operator needs the same subscriptions as the engines: here those of release 2, which has the fix.
const operator = createOperator({ store, subscriptions: [sales(2)], by: 'ada' })

for (const { state, held, lanes, errorType } of await operator.incidents({ subscription: 'sales' }))
  console.log('incident', state, errorType, `letters: ${held}, lanes: ${lanes}`)

const { letter, decoded, behind, revisions } = await operator.letter({ subscription: 'sales', position: 2 })
console.log(letter.lane, 'held at', letter.event.position, 'with', behind.length, 'behind it')
// Show the shape of the payload and the redacted message, without payload values.
if ('data' in decoded && letter.failure)
  console.log(shapeOf(decoded.data), redactFailure(letter.failure, payloadOf({ ...letter, revisions })).message)

const before = await operator.stateAt('sales', 'berlin', { before: letter.event.position })
console.log('before it', before.row?.data)

for (const { lane, verdict, changes } of (await operator.dryRun('sales', { all: true })).lanes)
  console.log('would', verdict, lane, changes[0]?.after?.['data'] ?? '')

// rome fails in release 2 too, because its price is negative. Correct the data.
const rome = { subscription: 'sales', position: 5 }
const { changes } = await operator.revise(rome, { data: { sku: 'book', price: 12 } }, 'ticket 71: a typo')
console.log('revised', changes.map(({ path }) => path).join())

const { digest } = await operator.select('sales', 'redrive', { all: true })
const options = { reason: 'release 2', expected: digest, canary: true } as const
const { redrive } = await operator.redrive('sales', { all: true }, options)
// No engine runs here, so this process releases the lanes; otherwise the engine does.
const { by, redrive: over } = await operator.ensureWorked(redrive.id)
console.log('redrive', over.status, over.letters, 'letters in', over.lanes, 'lanes, by', by)

const second = createEngine({ store, subscriptions: [sales(2)] })
await second.start()
await second.drain()
console.log('rome', (await second.read(sales(2)).get('rome'))?.data)
console.log('verified', (await second.verify('sales')).ok)
await second.stop()

for (const { number, act, target, reason } of await operator.audit()) console.log(number, act, target, reason)
console.log('audit', (await operator.verifyAudit()).ok)

// node main.ts shop.db 3000 http://mail.internal/send
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createEngine } from 'holdfast'
import { createSqliteStore } from 'holdfast/sqlite'
import { createApp } from './app.ts'
import { createOrders } from './orders.ts'
import { customers, receipts } from './shop.ts'

const [file = 'shop.db', port = '3000', mailUrl = 'http://localhost:3001/send'] = process.argv.slice(2)

const store = await createSqliteStore({ file })
const engine = createEngine({ store, subscriptions: [customers, receipts(mailUrl)] })
const orders = createOrders(store, file)
await engine.start()
const server = createApp(store, engine, orders).listen(Number(port))
await once(server, 'listening')
console.log('listening on', (server.address() as AddressInfo).port)

// #region shutdown
/** Stops in order: first the HTTP server, then the engine, then the store, because each uses the next. */
async function shutDown(): Promise<void> {
  server.close()
  await once(server, 'close')
  const { forced } = await engine.stop({ timeout: '10s' })
  orders.close()
  await store.close()
  console.log(forced ? 'stopped by force; events in progress are handled again' : 'stopped')
}

process.once('SIGTERM', () => void shutDown())
process.once('SIGINT', () => void shutDown())
// #endregion

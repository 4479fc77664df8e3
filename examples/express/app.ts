import { type Engine, read, type Store } from 'holdfast'
import express from 'express'
import { z } from 'zod'
import { health } from './health.ts'
import type { createOrders } from './orders.ts'
import { customers } from './shop.ts'

const order = z.object({ id: z.string(), email: z.string(), total: z.int().positive() })

export function createApp(store: Store, engine: Engine, orders: ReturnType<typeof createOrders>): express.Express {
  const app = express()
  app.use(express.json())

  app.post('/orders', async (request, response) => {
    const parsed = order.safeParse(request.body)
    if (!parsed.success) return void response.status(400).json({ error: 'An order has an id, an email and a total.' })
    const isNew = await orders.place(parsed.data)
    response.status(isNew ? 201 : 200).json({ id: parsed.data.id })
  })
  app.get('/orders', (_request, response) => void response.json(orders.list()))
  app.get('/customers/:email', async (request, response) => {
    const row = await read(store, customers).get(request.params.email)
    if (row) response.json(row.data)
    else response.status(404).json({ error: 'No orders yet.' })
  })

  // A liveness probe should only check that the process answers.
  app.get('/live', (_request, response) => void response.json({ isAlive: true }))
  app.get('/ready', async (_request, response) => {
    const report = await health(engine)
    response.status(report.isReady ? 200 : 503).json(report)
  })
  return app
}

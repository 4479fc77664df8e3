import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { start } from '../run.ts'

vi.setConfig({ testTimeout: 60_000 })

const folder = mkdtempSync(join(tmpdir(), 'holdfast-express-'))
const mails = new Map<string, string>()
const mailService = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    mails.set(String(request.headers['idempotency-key']), Buffer.concat(chunks).toString())
    response.end()
  })
})

beforeAll(async () => {
  mailService.listen(0)
  await once(mailService, 'listening')
})
afterAll(() => {
  mailService.close()
  rmSync(folder, { recursive: true })
})

test('an order has its row, its event, its read model and its mail; and SIGTERM ends the app in order', async () => {
  const mailUrl = `http://localhost:${(mailService.address() as AddressInfo).port}/send`
  const app = start('express/main.ts', [join(folder, 'shop.db'), '0', mailUrl])
  await vi.waitFor(() => expect(app.output.stdout).toContain('listening on'), { timeout: 30_000 })
  const base = `http://localhost:${/listening on (\d+)/.exec(app.output.stdout)?.[1]}`
  const post = (body: object) =>
    fetch(`${base}/orders`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }).then(({ status }) => status)
  const get = async (path: string) => {
    const response = await fetch(base + path)
    return { status: response.status, body: await response.json() }
  }

  const order = (id: string) => ({ id, email: 'ada@mail.example', total: 20 })
  const ids = ['o1', 'o2', 'o3', 'o4', 'o5', 'o6']
  // All at once: each has a transaction of its own.
  expect(await Promise.all(ids.map((id) => post(order(id))))).toEqual(ids.map(() => 201))
  expect(await post(order('o1'))).toBe(200)
  expect(await post({ id: 'o7' })).toBe(400)
  expect(await get('/orders')).toEqual({ status: 200, body: ids.map(order) })
  await vi.waitFor(
    async () => {
      const body = { orders: 6, spent: 120 }
      expect(await get('/customers/ada@mail.example')).toEqual({ status: 200, body })
      expect(mails.size).toBe(6)
    },
    { timeout: 20_000 },
  )
  expect((await get('/live')).status).toBe(200)
  expect(await get('/ready')).toMatchObject({
    status: 200,
    body: {
      isReady: true,
      subscriptions: [
        { name: 'customers', heldLanes: 0 },
        { name: 'receipts', heldLanes: 0 },
      ],
    },
  })

  app.process.kill('SIGTERM')
  expect(await app.ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/stopped\n$/) })
})

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createSqliteStore } from 'holdfast/sqlite'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { start } from '../run.ts'

vi.setConfig({ testTimeout: 60_000 })

const folder = mkdtempSync(join(tmpdir(), 'holdfast-nestjs-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** As a user of Nest compiles it: decorators are not erasable. */
beforeAll(async () => {
  const tsc = join(import.meta.dirname, '../../node_modules/.bin/tsc')
  await promisify(execFile)(process.execPath, [tsc, '-p', import.meta.dirname])
}, 60_000)

test('a Nest app starts the engine with the app, and stops it with the app', async () => {
  const file = join(folder, 'shop.db')
  const app = start('nestjs/dist/examples/nestjs/src/main.js', [], { PORT: '0', SHOP_DB: file })
  await vi.waitFor(() => expect(app.output.stdout).toContain('listening on'), { timeout: 40_000 })
  const port = /listening on \S+:(\d+)/.exec(app.output.stdout)?.[1]
  const ask = async (path: string, body?: object) => {
    const options = body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }
    const response = await fetch(`http://localhost:${port}/${path}`, options)
    return await response.json()
  }
  const order = { id: 'o1', email: 'ada@mail.example', total: 20 }
  expect(await ask('orders', order)).toEqual({ isNew: true })
  expect(await ask('orders', order)).toEqual({ isNew: false })
  await vi.waitFor(async () => expect(await ask('customers/ada@mail.example')).toEqual({ orders: 1, spent: 20 }), {
    timeout: 20_000,
  })
  await vi.waitFor(() => expect(app.output.stdout).toContain('receipt for o1 receipts/o1-placed'), { timeout: 20_000 })
  expect(await ask('ready')).toMatchObject({ isReady: true })

  app.process.kill('SIGTERM')
  await app.ended
  // Stopped in order: its partitions are given back, not left to be missed.
  await using store = await createSqliteStore({ file })
  expect(await store.subscriptions.partitions('customers')).toMatchObject([{ owner: undefined }])
})

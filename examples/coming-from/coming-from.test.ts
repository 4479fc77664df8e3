import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEngine, createLog, defineEvents, defineHandler, defineSubscription } from 'holdfast'
import { createTemporaryStore } from 'holdfast/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createDatabase, describeNewest } from '../../test/postgres/databases.ts'
import { useRedis } from '../../test/services/redis.ts'
import { describeService } from '../../test/services/services.ts'
import { run } from '../run.ts'
import { appendRecord } from './kafka-consumer.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-coming-from-'))
afterAll(() => rmSync(folder, { recursive: true }))

describeNewest('coming from', (server) => {
  test('an outbox table: what was not sent is handled once, in the order of its key', { timeout: 60_000 }, async () => {
    await using database = await createDatabase(server)
    const { code, stdout } = await run('coming-from/outbox-table.ts', [database.url])
    expect(code).toBe(0)
    const [moved, ...rest] = stdout.trimEnd().split('\n')
    expect(moved).toBe('moved by the loop: 2')
    const mails = rest.slice(0, -1)
    expect(mails.toSorted()).toEqual([
      'mail: order-2 outbox/2 20',
      'mail: order-4 order-4-placed 44',
      'mail: order-4 outbox/4 40',
    ])
    expect(mails.indexOf('mail: order-4 outbox/4 40')).toBeLessThan(mails.indexOf('mail: order-4 order-4-placed 44'))
    expect(rest.at(-1)).toBe('outbox/3 parked')
  })

  test('pg-boss: jobs that are left become events, in one commit with their completion', {
    timeout: 60_000,
  }, async () => {
    await using database = await createDatabase(server)
    const { code, stdout } = await run('coming-from/pg-boss.ts', [database.url])
    expect(code).toBe(0)
    const [moved, ...mails] = stdout.trimEnd().split('\n')
    expect(moved).toBe('moved: 3')
    expect(mails.toSorted()).toEqual(['mail to ada', 'mail to bob', 'mail to eve'])
  })
})

describeService('redis', 'coming from BullMQ', (found) => {
  test('jobs that are left become events, those that are due later too', { timeout: 60_000 }, async () => {
    await using redis = await useRedis(found)
    const prefix = `holdfast-${process.pid}`
    const { code, stdout } = await run('coming-from/bullmq.ts', [join(folder, 'mails.db'), redis.url, prefix])
    expect(code).toBe(0)
    const lines = stdout.trimEnd().split('\n')
    expect(lines.filter((line) => line.startsWith('moved:'))).toHaveLength(3)
    expect(lines.slice(3).toSorted()).toEqual(['mail to ada', 'mail to bob', 'mail to eve'])
  })
})

describe('coming from a Kafka consumer', () => {
  test('a record that comes again is one event, and one that nobody can read is held', async () => {
    await using store = await createTemporaryStore()
    const log = createLog({ store })
    const record = (offset: number, key: string | null, value: string) =>
      appendRecord(log, { topic: 'orders', partition: 0, offset: BigInt(offset), key, value })
    const paid = '{"type":"OrderPaid","cents":9007199254740993}'
    expect(await record(0, 'o1', paid)).toBe(true)
    expect(await record(0, 'o1', paid)).toBe(false)
    expect(await record(1, 'o2', 'not JSON')).toBe(true)
    expect(await record(2, null, paid)).toBe(true)

    const handled: string[] = []
    const orders = defineEvents({ OrderPaid: z.object({ cents: z.number() }) })
    const handler = defineHandler('payments', { events: orders, on: { OrderPaid: ({ id }) => void handled.push(id) } })
    await using engine = createEngine({ store, subscriptions: [defineSubscription(handler, { unknown: 'hold' })] })
    await engine.start()
    await engine.drain()
    expect(handled.toSorted()).toEqual(['orders/0/0', 'orders/0/2'])
    expect(await engine.letters({ subscription: 'payments' })).toMatchObject([
      { lane: 'o2', status: 'parked', event: { id: 'orders/0/1', type: 'Unreadable' } },
    ])
  })
})

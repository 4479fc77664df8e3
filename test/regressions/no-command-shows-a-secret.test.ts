import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLog, type Store } from 'holdfast'
import { expect, it, vi } from 'vitest'
import { canaries, leaksOf } from '../canaries.ts'
import { createPlace } from '../cli/place.ts'
import { describeStores } from '../rebuild/stores.ts'

// P12, from the outside: with forty secrets in payloads and metadata, and in every error, no command, no log line and no event of an engine has
// one of them; and in the same run everything that is needed to find the fault is there to read.

vi.setConfig({ testTimeout: 90_000 })

const shopOf = (dialect: 'sqlite' | 'postgres') => `
import { defineSqlProjection } from 'holdfast/${dialect}'
import { appendFileSync } from 'node:fs'
import { defineEvents, defineHandler, defineProjection, definePolicy, failure, park, retry, fixed } from 'holdfast'
import { z } from 'zod'

export const shop = defineEvents({
  Placed: z.object({ way: z.number(), value: z.unknown() }),
  Misread: z.object({ value: z.unknown() }).refine(() => false, { error: ({ input }) => 'unfit at field_two: ' + String(input.value) }),
})
class PaymentDeclined extends Error { name = 'PaymentDeclined' }
const say = (value) => 'column "shipped_at" of table revenue_by_day2 in /srv/shop/orders-2.ts, HTTP 503 from carrier: ' + value
const ways = [
  (value) => { throw new PaymentDeclined(say(value)) },
  (value) => { throw Object.assign(new PaymentDeclined(say(value)), { code: 'E_' + value }) },
  (value) => { throw new PaymentDeclined(say('it'), { cause: new TypeError('no ' + JSON.stringify(value)) }) },
  (value) => { throw Object.assign(new Error(say('it')), { name: value + 'Error' }) },
  (value) => { throw say(value) },
  (value) => { throw new PaymentDeclined(say(encodeURIComponent(String(value)) + ' ' + Buffer.from('v:' + value).toString('base64'))) },
  (value) => { throw Object.assign(new PaymentDeclined(say(value)), { status: 422 }) },
  (value) => { throw failure.skip('not for ' + value) },
]

export const notify = defineHandler('notify', {
  events: shop,
  failure: definePolicy({ permanent: park, unknown: park, transient: retry({ attempts: 2, backoff: fixed('10ms') }) }),
  onError: (error, { data }) => { throw new Error('hook: ' + data.value) },
  on: {
    Placed: ({ data }, { logger }) => {
      logger.warn({ error: new RangeError('about ' + data.value) }, 'about to fail')
      return ways[data.way](data.value)
    },
    Misread: () => undefined,
  },
})
export const totals = defineProjection('totals', {
  events: shop,
  initial: () => ({ last: null, count: 0 }),
  on: {
    Placed: (row, { data, key }) => {
      if (key !== 'k1' && key !== 'k2') throw new PaymentDeclined(say(data.value))
      return { last: data.value, count: row.count + 1 }
    },
  },
})
export const people = defineSqlProjection('people', {
  events: shop,
  on: {
    Placed: async ({ data, key }, tx) => {
      const run = (sql, value) => (tx.exec ? tx.prepare(sql.replace('$1', '?')).run(String(value)) : tx.query(sql, [String(value)]))
      if (key === 'k3') await run('INSERT INTO revenue_by_day2 (email) VALUES ($1)', data.value)
      else if (key === 'k4' && tx.query) await tx.query('SELECT $1::integer', [String(data.value)])
      else throw new PaymentDeclined(say(data.value))
    },
  },
})
export function listen(engine) {
  const write = (name) => (event) => appendFileSync(new URL('heard', import.meta.url), name + JSON.stringify(event, all) + '\\n')
  for (const name of ['lane.held', 'handler.failed', 'handler.skipped', 'message.nacked', 'message.dlq', 'subscription.blocked', 'subscription.state', 'store.failed'])
    engine.on(name, write(name))
}
const all = (_, value) => (value instanceof Error ? [value.name, value.message, value.stack, Object.entries(value)] : value)
`

const config = `
import { defineConfig } from 'holdfast'
import { shop, notify, totals, people, listen } from './shop.ts'
export default defineConfig({
  store: { sqlite: 'events.db' }, subscriptions: [notify, totals, people], events: shop, engine: { poll: '20ms' }, onEngine: listen,
})
`

const ways = 8
const why = ['--reason', 'a test']

/** The one at position `i + 1`; every tenth is not what its schema wants. */
async function append(store: Store, i: number, value: string | number): Promise<void> {
  const data = { way: i % ways, value }
  const metadata = { userId: String(value), nested: { value } }
  await createLog({ store }).raw.append(`k${i + 1}`, [{ type: i % 10 === 9 ? 'Misread' : 'Placed', data, metadata }])
}

describeStores('forty secrets', (open) => {
  it('are in nothing that a command says, and what is wrong is', async () => {
    await using stored = await open()
    const { address } = stored
    const env =
      'file' in address
        ? { HOLDFAST_STORE: `sqlite:${address.file}` }
        : { HOLDFAST_STORE: address.url, HOLDFAST_SCHEMA: address.schema }
    using place = createPlace({
      'shop.ts': shopOf('file' in address ? 'sqlite' : 'postgres'),
      'bank.ts': '',
      'holdfast.config.ts': config,
    })
    const said: { args: string; text: string }[] = []
    const call = async (...args: string[]) => {
      const told = await place.call(args, { env })
      said.push({ args: args.join(' '), text: `${told.stdout}\n${told.stderr}` })
      return told
    }
    const both = async (...args: string[]) => {
      await call(...args, '--json')
      return (await call(...args)).stdout
    }

    for (const [i, value] of canaries.entries()) await append(stored.store, i, value)
    const started = await call('start', '--drain')
    expect(started.code).toBe(0)
    const shown: string[] = []
    for (let way = 0; way < ways; way++) shown.push(await both('dlq', 'show', 'notify', String(way + 1), '--stack'))
    for (const subscription of ['notify', 'totals', 'people']) {
      await both('dlq', 'list', subscription, '--all')
      await both('dlq', 'incidents', subscription)
      await both('dlq', 'stats', subscription)
      await both('dlq', 'redrive', subscription, '--all', '--dry-run')
      await both('dlq', 'show', subscription, '5')
    }
    const people = await both('dlq', 'show', 'people', '3')
    await both('dlq', 'show', 'people', '4')
    await both('dlq', 'edit', 'totals', '5', '--data', JSON.stringify({ way: 0, value: canaries[0] }), '--dry-run')
    await both('dlq', 'edit', 'totals', '5', '--data', JSON.stringify({ way: 0, value: canaries[0] }), ...why)
    await both('dlq', 'edit', 'totals', '5', '--undo', ...why)
    await both('dlq', 'redrive', 'totals', '--letter', '5', ...why)
    await both('redrives', 'list')
    for (const command of ['status', 'doctor', 'config', 'verify']) await both(command)
    await both('events', 'tail', '--limit', '100')
    await both('events', 'show', '7')
    await both('events', 'history', 'k7')
    await both('projections', 'get', 'totals', 'k1')
    await both('projections', 'history', 'totals', 'k1')
    await both('subscriptions', 'list')
    await both('breakers', 'list')
    await both('audit', 'list')

    const heard = readFileSync(join(place.folder, 'heard'), 'utf8')
    said.push({ args: 'what listeners heard', text: heard })
    // One of three digits is in every other id.
    const sure = canaries.filter((secret) => secret !== 611)
    const leaks = sure.flatMap((secret) =>
      said.flatMap(({ args, text }) => leaksOf(secret, text).map((found) => ({ args, secret, found }))),
    )
    expect(leaks).toEqual([])

    // And now the same run, read by an operator.
    const needed = ['shipped_at', 'revenue_by_day2', '/srv/shop/orders-2.ts', 'HTTP 503', 'PaymentDeclined']
    for (const text of [started.stderr, shown[0], shown[2], heard])
      for (const part of needed) expect(text).toContain(part)
    expect(shown[6]).toContain('permanent, by the rule http: HTTP 422')
    expect(people).toMatch(/revenue_by_day2/)
    expect(people).toMatch(/by the rule sql: (SQLITE_ERROR|SQLSTATE 42P01)/)
  })
})

import { startServer } from './test/postgres/server.ts'
import { createEngine, createLog, defineEvents, defineProjection, defineSubscription } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { z } from 'zod'
const bank = defineEvents({ Credited: z.object({ amount: z.number() }) })
const P = Number(process.argv[2] ?? 4)
const balances = defineProjection('balances', { events: bank, initial: () => ({ balance: 0 }), on: { Credited: (r, { data }) => ({ balance: r.balance + data.amount }) } })
await using server = await startServer({})
const url = await server.createDatabase('x')
await using store = await createPostgresStore({ connection: url })
const log = createLog({ store, events: bank })
const marks: [string, number][] = []
const mark = (n: string) => marks.push([n, performance.now()])
const s2 = { ...store, subscriptions: { ...store.subscriptions, commit: async (c: any) => { mark('commit>'); const r = await store.subscriptions.commit(c); mark('commit<'); return r } }, log: { ...store.log, readAll: async (a: any, b: any, c: any) => { mark('read>'); const r = await store.log.readAll(a, b, c); mark('read<' + r.events.length); return r } }, rows: { ...store.rows, load: async (a: any, b: any) => { mark('load>'); const r = await store.rows.load(a, b); mark('load<'); return r } } }
const engine = createEngine({ store: s2 as any, subscriptions: [defineSubscription(balances, { partitions: P })] })
await engine.start(); await engine.drain()
const agg = new Map<string, number[]>()
for (let i = 0; i < 300; i++) {
  await new Promise(r => setTimeout(r, 15))
  marks.length = 0
  const t0 = performance.now()
  let pos = 0
  let end = 0
  const done = new Promise<void>(res => { const off = engine.on('page.committed', (e) => { if (e.events > 0) { off(); end = performance.now(); res() } }) })
  const a = await log.append(`account-${i % 100}`, [{ type: 'Credited', data: { amount: 1 } }]); pos = a.position
  const t1 = performance.now()
  await done
  const add = (k: string, v: number) => { const l = agg.get(k) ?? []; l.push(v); agg.set(k, l) }
  add('1 append', t1 - t0); add('9 total', end - t0); add('8 after append', end - t1)
  const first = (n: string) => marks.find(([m]) => m.startsWith(n))?.[1] ?? NaN
  add('2 append..read>', first('read>') - t1); add('3 read> .. read<1', first('read<1') - first('read>')); add('4 read<1 .. commit>', first('commit>') - first('read<1')); add('5 commit', first('commit<') - first('commit>'))
}
for (const [k, l] of [...agg].sort()) { l.sort((a, b) => a - b); console.log(k.padEnd(22), 'p50', l[l.length >> 1]!.toFixed(3), 'p95', l[Math.floor(l.length * .95)]!.toFixed(3)) }
await engine.stop()

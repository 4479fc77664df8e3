// Run by `node --test`, from by-node.test.ts: the kit needs no test runner of its own. One of these is to fail.
import { test } from 'node:test'
import { createTestEngine, expectIdempotent, expectOrderSafe, expectRebuildEqual, given } from 'holdfast/testing'
import { accounts, balances, careless, credited, debited, Post, receipts } from '../shop.ts'

const events = [credited('anna', 1), credited('bob', 2)]
const world = () => {
  const post = new Post()
  return { dependencies: post, observe: (key: string) => post.sentTo(key) }
}

await test('sentences hold', async () => {
  await given(balances, [credited('anna', 10)])
    .when([debited('anna', 4)])
    .then({ anna: { balance: 6 } })
  await given(receipts(new Post())).when(events).then(['done', 'done'])
  await given(accounts)
    .when(() => undefined)
    .then([])
})

await test('expectations hold', async () => {
  await expectIdempotent(receipts, events, { world })
  await expectOrderSafe(balances, events)
  await expectRebuildEqual(balances, events)
})

await test('an engine runs', async (t) => {
  await using app = await createTestEngine({ subscriptions: [balances] })
  await app.append(events)
  await app.settle()
  t.assert.deepEqual(await app.rows(balances), { anna: { balance: 1 }, bob: { balance: 2 } })
})

await test('time that is mocked keeps nobody waiting', { timeout: 10_000 }, async (t) => {
  t.mock.timers.enable()
  await given(balances)
    .when(events)
    .then({ anna: { balance: 1 }, bob: { balance: 2 } })
})

await test('a handler that mails twice is found out', async () => {
  await expectIdempotent(careless, events, { world })
})

import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { createEngine, createLog, defineSubscription, type Store, StoreError } from '../../src/index.ts'
import { createScriptedSource } from '../../src/testing/source.ts'
import { balances, bank, countsOf, createWorld, credited, debited, heldOf } from '../fixtures.ts'
import { defineSqlProjection } from 'holdfast/sqlite'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

// R1: `INSERT OR ROLLBACK` (or RAISE(ROLLBACK) in a trigger) ends the transaction of a careful page; the next event's SAVEPOINT then
// opens one of its own, and its RELEASE commits it, without a checkpoint.
it.for(['OR ROLLBACK', 'RAISE(ROLLBACK)'])(
  'an event that rolls back by a conflict (%s): nothing is applied outside the one transaction',
  async (how) => {
    await using world = await createWorld()
    const db = new DatabaseSync(world.store.file)
    db.exec(
      'CREATE TABLE lines (n INTEGER PRIMARY KEY, key TEXT, amount INTEGER); CREATE TABLE once (n INTEGER UNIQUE); INSERT INTO once VALUES (1)',
    )
    if (how === 'RAISE(ROLLBACK)')
      db.exec("CREATE TRIGGER no BEFORE INSERT ON once BEGIN SELECT RAISE(ROLLBACK, 'no'); END")
    const journal = defineSqlProjection('journal', {
      events: bank,
      on: {
        Credited: ({ key, data }, tx: DatabaseSync) => {
          tx.prepare('INSERT INTO lines (key, amount) VALUES (?, ?)').run(key, data.amount)
        },
        Debited: (_, tx: DatabaseSync) =>
          tx.exec(how === 'OR ROLLBACK' ? 'INSERT OR ROLLBACK INTO once VALUES (1)' : 'INSERT INTO once VALUES (2)'),
      },
    })
    const log = createLog({ store: world.store, events: bank })
    await log.append('a', [credited(1)])
    await log.append('bad', [debited(1)])
    await log.append('c', [credited(3)])
    for (let i = 0; i < 3; i++) {
      const engine = world.engine([journal])
      await world.settle(engine).catch(() => undefined)
      await engine.stop()
    }
    const lines = db
      .prepare('SELECT key, amount FROM lines ORDER BY n')
      .all()
      .map(({ key }) => key)
    db.close()
    // Either all of it (a and c applied, bad held) or nothing; never c three times and a not at all.
    expect([[], ['a', 'c']]).toContainEqual(lines)
  },
)

/** A commit whose connection is lost while the server still works on it: the caller hears of an error, and it happens later. */
function inFlight(store: Store, which: (number: number) => boolean): Store {
  const { subscriptions } = store
  let number = 0
  let late: (() => Promise<unknown>) | undefined
  return {
    ...store,
    subscriptions: {
      ...subscriptions,
      commit: async (commit) => {
        if (commit.letters.length > 0 && which(++number)) {
          late = () => subscriptions.commit(commit)
          throw new StoreError('STORE_UNAVAILABLE', 'The connection was lost.')
        }
        // The second waits for the first at the row of the partition.
        await late?.()
        late = undefined
        return subscriptions.commit(commit)
      },
    },
  }
}

// R2: the commit of a lane doesn't move the checkpoint, so `position = from` doesn't tell that it was done before.
it.for(['Renamed', 'Credited'])(
  'a lane commit (%s) that was under way when the state was read again is not done twice',
  async (type) => {
    await using world = await createWorld()
    const source = createScriptedSource()
    const subscription = defineSubscription(balances, { source })
    // The first commit with letters to change is that of the page that heals; the second is the lane's.
    const engine = world.engine([subscription], { store: inFlight(world.store, (n) => n === 2) })
    const credit = (version: number) => ({ key: 'a', type: 'Credited', version, data: { amount: 1 } })
    await engine.start()
    source.deliver(credit(1), type === 'Credited' ? credit(3) : { key: 'a', type, version: 3, data: { owner: 'x' } })
    await world.runtime.advance(2_000)
    source.deliver(credit(2))
    await world.runtime.advance(10_000)
    expect(await heldOf(engine)).toEqual([])
    const [status] = (await engine.status()).subscriptions
    expect(status?.state.state).toBe('live')
    expect(await countsOf(engine)).toMatchObject({
      held: 0,
      duplicate: 0,
      ...(type === 'Credited' ? { applied: 3, filtered: 0 } : { applied: 2, filtered: 1 }),
    })
  },
)

it('code that hangs in the transaction of an event does not keep everybody else from writing for ever', async () => {
  const world = await createWorld()
  const hangs = defineSqlProjection('hangs', { events: bank, on: { Credited: () => new Promise(() => undefined) } })
  const log = createLog({ store: world.store, events: bank })
  await log.append('a', [credited(1)])
  const engine = createEngine({ store: world.store, subscriptions: [hangs], logger: silent, lease: '300ms' })
  await engine.start()
  await setTimeout(300)
  const { forced } = await engine.stop({ timeout: '200ms' })
  expect(forced).toBe(true)
  const appended = log.append('b', [credited(1)]).then(() => 'appended')
  expect(await Promise.race([appended, setTimeout(20_000, 'still waiting')])).toBe('appended')
})

it('a statement that comes after its transaction is refused', async () => {
  await using world = await createWorld()
  const db = new DatabaseSync(world.store.file)
  db.exec('CREATE TABLE lines (key TEXT)')
  const late: Promise<unknown>[] = []
  const journal = defineSqlProjection('journal', {
    events: bank,
    on: {
      Credited: ({ key }, tx: DatabaseSync) => {
        late.push(setTimeout(50).then(() => tx.prepare('INSERT INTO lines VALUES (?)').run(key)))
        throw new Error('this event is held')
      },
    },
  })
  await createLog({ store: world.store, events: bank }).append('a', [credited(1)])
  const engine = world.engine([journal])
  await world.settle(engine)
  await Promise.allSettled(late)
  expect(await heldOf(engine, 'journal')).toHaveLength(1)
  expect(db.prepare('SELECT * FROM lines').all()).toEqual([])
  db.close()
})

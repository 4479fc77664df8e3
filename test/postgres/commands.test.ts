import { type Commands, createCommands, createLog, ExpectedVersionError, type Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { expect, it } from 'vitest'
import { bank, credited } from '../fixtures.ts'
import { cloneDatabase, describeServers, type TestServer } from './databases.ts'

// Commands of several processes on one key. What a command does by itself is in src/command.

interface Account {
  readonly balance: number
  readonly seen: number
}

interface World extends AsyncDisposable {
  readonly stores: readonly Store[]
  /** Each process has a store of its own; so do these. */
  readonly processes: readonly Commands<typeof bank, Account>[]
}

async function createWorld(server: TestServer): Promise<World> {
  const database = await cloneDatabase(server)
  const stores = await Promise.all([1, 2, 3, 4].map(() => createPostgresStore({ connection: database.url })))
  return {
    stores,
    processes: stores.map((store) =>
      createCommands({
        store,
        events: bank,
        initial: () => ({ balance: 0, seen: 0 }),
        on: { Credited: ({ balance, seen }, { data }) => ({ balance: balance + data.amount, seen: seen + 1 }) },
      }),
    ),
    [Symbol.asyncDispose]: async () => {
      for (const store of stores) await store.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

async function eventsOf({ stores }: World, key: string) {
  const events = []
  for await (const event of createLog({ store: stores[0] as Store, events: bank }).readKey(key)) events.push(event)
  return events
}

/** The process whose turn it is. */
function processOf({ processes }: World, turn: number): Commands<typeof bank, Account> {
  return processes[turn % processes.length] as Commands<typeof bank, Account>
}

describeServers('commands', (server) => {
  it('sixteen at once on one key: each gets through or says so, and the state is the fold', async () => {
    await using world = await createWorld(server)
    const asked = Array.from({ length: 16 }, (_, i) =>
      processOf(world, i).execute('hot', ({ balance }) => [credited(balance + 1)]),
    )
    const settled = await Promise.allSettled(asked)
    const done = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    for (const one of settled) {
      if (one.status === 'fulfilled') continue
      expect(one.reason).toBeInstanceOf(ExpectedVersionError)
      expect(one.reason).toMatchObject({ tries: 4 })
    }
    const events = await eventsOf(world, 'hot')
    expect(done.length).toBeGreaterThan(0)
    expect(events).toHaveLength(done.length)
    // Each decided on exactly what was there before it: 1, 2, 4, 8, …
    expect(events.map(({ data }) => data)).toEqual(done.map((_, i) => ({ amount: 2 ** i })))
    for (const { version, position, state } of done) {
      expect(state).toEqual({ balance: 2 ** version - 1, seen: version })
      expect(events[version - 1]).toMatchObject({ position })
    }
    expect(await processOf(world, 0).execute('hot', () => undefined)).toMatchObject({
      outcome: 'unchanged',
      state: { balance: 2 ** done.length - 1 },
    })
  })

  it('one idempotency key at once in four processes appends once, and all hear the same', async () => {
    await using world = await createWorld(server)
    const asked = Array.from({ length: 16 }, (_, i) =>
      processOf(world, i).execute('hot', () => [credited(1), credited(i)], { idempotencyKey: 'once', content: 'same' }),
    )
    const done = await Promise.all(asked)
    const events = await eventsOf(world, 'hot')
    expect(events).toHaveLength(2)
    expect(done.filter(({ outcome }) => outcome === 'executed')).toHaveLength(1)
    for (const one of done) {
      expect(one).toMatchObject({ version: 2, position: events[1]?.position })
      expect(events).toMatchObject(one.events)
    }
    await expect(
      processOf(world, 1).execute('hot', () => [credited(1)], { idempotencyKey: 'once', content: 'other' }),
    ).rejects.toMatchObject({ code: 'COMMAND_CONFLICT' })
  })
})

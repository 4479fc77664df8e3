import {
  createEngine,
  createLog,
  createOperator,
  defineHandler,
  definePolicy,
  defineSubscription,
  type Engine,
  failure,
  park,
  type Redrive,
  type Store,
} from 'holdfast'
import { expect, it, vi } from 'vitest'
import { balances, bank, countsOf, credited, debited, rowOf } from '../fixtures.ts'
import { codeOf } from '../operator/scene.ts'
import { createBreakerScene, patience, silent } from './breaker-scene.ts'
import { append, describeCli, why as because } from './cli-stores.ts'
import { describeTwoStores, type TwoStores } from './two-stores.ts'

// All letters of a lane are discarded in one act with one audit entry. Letters that are queued after the selection are tried.

const why = { reason: 'a bad import' }
const lane = 'a'
/** The failing event and the events behind it. */
const garbage = 40

async function createScene({ store, other }: TwoStores) {
  const calls: number[] = []
  const notify = defineHandler('notify', {
    events: bank,
    on: {
      Debited: () => {
        throw failure.permanent('no such account')
      },
      Credited: ({ data }) => void calls.push(data.amount),
    },
  })
  // In one partition, so that the next owner works at the same rate as the first one.
  const subscriptions = [balances, notify].map((one) => defineSubscription(one, { partitions: 1 }))
  const log = createLog({ store, events: bank })
  const engineOn = (on: Store) => createEngine({ store: on, subscriptions, logger: silent, poll: '20ms' })
  const engine = engineOn(store)
  await log.append(lane, [credited(1), debited(9), ...Array.from({ length: garbage - 1 }, () => credited(1_000))])
  await log.append('b', [credited(2)])
  await engine.start()
  await engine.drain()
  calls.length = 0
  const operator = createOperator({ store: other, subscriptions, by: 'ada' })
  const acts = async () => (await operator.audit()).map(({ act, details }) => [act, details])
  return {
    log,
    engine,
    engineOn,
    operator,
    acts,
    calls,
    [Symbol.asyncDispose]: async () => {
      await engine.stop()
    },
  }
}

type Scene = Awaited<ReturnType<typeof createScene>>

async function over({ operator }: Pick<Scene, 'operator'>, { id }: Pick<Redrive, 'id'>): Promise<Redrive> {
  for await (const { redrive, isOver } of operator.watch(id, { every: '10ms' })) if (isOver) return redrive
  throw new Error(`The redrive ${id} is not over.`)
}

/** Only the last credit was applied, and no lane is held. */
async function isApplied(engine: Engine, calls: readonly number[], name: string, amount: number): Promise<void> {
  const row = (await rowOf(engine, lane))?.data
  expect(name === 'balances' ? row : calls).toEqual(name === 'balances' ? { balance: 1 + amount, seen: 2 } : [amount])
  expect(await countsOf(engine, name)).toMatchObject({ held: 0, discarded: garbage, applied: 3 })
  expect(await engine.verify(name)).toMatchObject({ ok: true })
}

describeTwoStores('a whole lane', (open) => {
  it.for([
    ['balances', 'discard', 'discarded', 'would be discarded'],
    ['notify', 'resolve', 'resolved', 'would count as handled manually'],
  ] as const)('of %s ends with one %s, and letters that are queued later are tried', async (each) => {
    const [name, act, status, wouldEnd] = each
    await using stores = await open()
    await using scene = await createScene(stores)
    const { operator, engine, log } = scene
    const seen = await operator.select(name, act, { lane, whole: true })
    expect(seen).toMatchObject({ lanes: 1, busy: 0, letters: garbage })
    const dry = await operator.dryRun(name, { lane, whole: true }, { act })
    expect(dry.lanes[0]?.letters.map(({ outcome }) => outcome)).toEqual(
      Array.from({ length: garbage }, () => ({ outcome: 'ignored', why: wouldEnd })),
    )
    await log.append(lane, [credited(7)])
    await engine.drain()

    // The set of letters has changed since the selection.
    const expected = seen.digest
    expect(await codeOf(operator[act](name, { lane, whole: true }, { ...why, expected }))).toBe('REDRIVE_CHANGED')
    const whole = seen.through as number
    const { redrive } = await operator[act](name, { lane, whole }, { ...why, expected })
    expect(await over(scene, redrive)).toMatchObject({ status: 'done', isWhole: true, letters: garbage + 1 })
    await isApplied(engine, scene.calls, name, 7)
    expect(await scene.acts()).toEqual([[act, { redrive: redrive.id, lanes: 1, letters: garbage }]])
    const letters = await operator.letters({ subscription: name, status, limit: 100 })
    // The engine resolves the letter that was tried.
    const ended = letters.filter(({ endedBy }) => endedBy === 'ada')
    expect(ended.map(({ event }) => event.position)).toEqual(Array.from({ length: garbage }, (_, i) => i + 2))
    expect(new Set(ended.map(({ endedReason }) => endedReason))).toEqual(new Set([why.reason]))
  })

  it.for(['balances', 'notify'])('of %s is ended by the next owner, from where the first one stopped', async (name) => {
    await using stores = await open()
    await using scene = await createScene(stores)
    const { operator, engine, log } = scene
    const { redrive } = await operator.discard(name, { lane, whole: true }, { ...why, rate: 40 })
    await vi.waitFor(async () => expect((await operator.findRedrive(redrive.id)).letters).toBeGreaterThan(1), patience)
    await engine.stop()
    const { letters, status } = await operator.findRedrive(redrive.id)
    expect(letters).toBeLessThan(garbage)
    expect(status).toBe('running')
    await log.append(lane, [credited(7)])
    // A started lane is finished, even if the redrive is cancelled.
    await operator.cancel(redrive.id, 'too slow')
    await using next = scene.engineOn(stores.other)
    await next.start()
    expect(await over(scene, redrive)).toMatchObject({ status: 'cancelled', byState: { done: 1 } })
    await next.drain()
    await isApplied(next, scene.calls, name, 7)
  })

  it('can be one of many, and is refused for acts that do not end letters', async () => {
    await using stores = await open()
    await using scene = await createScene(stores)
    const { operator, engine, log } = scene
    await log.append('c', [debited(5), credited(5)])
    await engine.drain()
    expect(await operator.select('balances', 'discard', { all: true, whole: true })).toMatchObject({
      lanes: 2,
      letters: garbage + 2,
    })
    const whole = { all: true, whole: true } as const
    for (const act of ['redrive', 'skip'] as const)
      expect(await codeOf(operator[act]('balances', whole, why))).toBe('OPTION_INVALID')
    const letter = { letter: 2, whole: true } as unknown as { letter: number }
    expect(await codeOf(operator.discard('balances', letter, why))).toBe('OPTION_INVALID')
    expect(await codeOf(operator.discard('balances', { lane, whole: 0 }, why))).toBe('OPTION_INVALID')
    expect(await scene.acts()).toEqual([])
    const { redrive } = await operator.discard('balances', whole, why)
    expect(await over(scene, redrive)).toMatchObject({ status: 'done', lanes: 2, letters: garbage + 2 })
    expect(await countsOf(engine)).toMatchObject({ held: 0, discarded: garbage + 2 })
    expect(await engine.verify('balances')).toMatchObject({ ok: true })
  })

  it('that waits for the breaker of an endpoint ends while the breaker is open', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores)
    const { operator, engine, endpoint } = scene
    await operator.isolateBreaker('notify:x', 'it is gone', { new: true })
    await scene.log.append('x/1', [credited(1), credited(2), credited(3)])
    await engine.start()
    await vi.waitFor(async () => {
      expect(await scene.lanes()).toMatchObject([{ status: 'waiting' }])
      expect(await operator.stats('notify')).toMatchObject({ byStatus: { queued: 2 } })
    }, patience)
    const { redrive } = await operator.discard('notify', { lane: 'x/1', whole: true }, why)
    expect(await over(scene, redrive)).toMatchObject({ status: 'done', letters: 3 })
    endpoint.isDown = false
    await operator.resetBreaker('notify:x', 'it is back')
    await scene.log.append('x/1', [credited(4)])
    await vi.waitFor(() => expect(scene.callsOf('x/1')).toEqual([4]), patience)
    await engine.drain()
    expect(await engine.verify('notify')).toMatchObject({ ok: true, counts: { applied: 1, discarded: 3, held: 0 } })
  })

  it('ends while the breaker of the whole handler is open', async () => {
    await using stores = await open()
    await using scene = await createBreakerScene(stores, {
      breaker: { opens: { failures: 100 }, cooldown: '10m' },
      failure: definePolicy({ transient: park, outage: false }),
    })
    const { operator } = scene
    await scene.log.append('x', [credited(1), credited(2), credited(3)])
    await scene.engine.start()
    await scene.engine.drain()
    await scene.engine.stop()
    await operator.isolateBreaker('notify', 'maintenance')
    await using engine = createEngine({ store: stores.store, subscriptions: [scene.handler], logger: silent })
    await scene.log.append('y', [credited(1)])
    await engine.start()
    await vi.waitFor(async () => {
      const [status] = (await engine.status()).subscriptions
      expect(status?.state).toMatchObject({ state: 'blocked', by: 'breaker' })
    }, patience)
    const { redrive } = await operator.discard('notify', { lane: 'x', whole: true }, why)
    expect(await over(scene, redrive)).toMatchObject({ status: 'done', letters: 3 })
    expect(await scene.lanes()).toEqual([])
    expect(scene.calls).toHaveLength(1)
    expect(await countsOf(engine, 'notify')).toMatchObject({ applied: 0, discarded: 3, held: 0 })
  })
})

describeCli('--whole', (open) => {
  it('discards all letters of a lane, and the confirmation shows how many they are', async () => {
    using place = open()
    await place.json(['migrate'])
    await append(place, 'a', 'Debited', { amount: 5 })
    for (const amount of [1, 2]) await append(place, 'a', 'Credited', { amount })
    expect(await place.call(['start', '--drain'])).toMatchObject({ code: 0 })
    const discard = ['dlq', 'discard', 'balances', '--lane', 'a', '--whole', ...because]
    const seen = await place.json<{ digest: string }>([...discard, '--dry-run'])
    expect(seen).toMatchObject({ code: 0, lanes: 1, letters: 3, through: 3, totals: { pass: 3, fail: 0 } })
    const shown = await place.call([...discard, '--dry-run'])
    expect(shown.stdout).toContain('3 letters would be discarded.')
    expect(shown.stderr).toContain(`discard balances --lane a --whole 3 --expect ${seen.digest.slice(0, 12)}`)
    for (const more of [
      ['--letter', '1'],
      ['--whole', 'x'],
      ['--whole', '0'],
    ]) {
      const wrong = ['dlq', 'discard', 'balances', '--whole', ...more, '--yes', ...because]
      expect(await place.json(wrong)).toMatchObject({ code: 2 })
    }
    expect(await place.json(['dlq', 'discard', 'balances', '1', '--whole', '--yes', ...because])).toMatchObject({
      code: 2,
      error: { code: 'USAGE' },
    })
    expect(await place.json(['dlq', 'redrive', 'balances', '--lane', 'a', '--whole'])).toMatchObject({ code: 2 })

    // A letter is queued while the command asks for confirmation.
    const typed = async () => {
      await append(place, 'a', 'Credited', { amount: 7 })
      await place.call(['start', '--drain'])
      return 'balances'
    }
    const told = await place.call(discard, { typed: [typed] })
    expect(told).toMatchObject({ code: 0 })
    expect(told.stderr).toContain(
      '3 letters in 1 lane of balances, up to position 3, will be discarded permanently; later letters are processed.',
    )
    expect(told.stdout).toContain('discard --whole of balances')
    expect(told.stdout).toContain('1 lane: 1 done; 4 letters processed')
    expect(await place.json(['dlq', 'list', 'balances', '--status', 'discarded'])).toMatchObject({
      letters: [{ position: 1 }, { position: 2 }, { position: 3 }],
    })
    expect(await place.json(['verify', 'balances'])).toMatchObject({
      code: 0,
      subscriptions: [{ counts: { applied: 1, held: 0, discarded: 3 } }],
    })
    const { entries } = await place.json<{ entries: { act: string; details: object }[] }>(['audit', 'list'])
    expect(entries.filter(({ act }) => act === 'discard')).toMatchObject([{ details: { lanes: 1, letters: 3 } }])
  })
})

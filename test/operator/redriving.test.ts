import { createLog, createOperator, defineProjection, type Redrive } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { bank, createWorld, credited, debited, rowOf } from '../fixtures.ts'
import { all, codeOf } from './scene.ts'

// What people ask for, carried out by real engines, in virtual time.

/** Remembers what it was told, in order. While there is a bug in it, some debits throw. */
function buggy() {
  const bug = { isBad: (_amount: number) => true }
  const trails = defineProjection('trails', {
    events: bank,
    initial: () => ({ trail: [] as number[] }),
    on: {
      Credited: (row, { data }) => ({ trail: [...row.trail, data.amount] }),
      Debited: (row, { data }) => {
        if (bug.isBad(data.amount)) throw new RangeError(`a bug at ${data.amount}`)
        return { trail: [...row.trail, -data.amount] }
      },
    },
  })
  return { bug, trails }
}

/** Lanes `k1`, `k2`, … that are each held at a debit of their number, with a credit behind it. */
async function createNight(lanes: number) {
  const world = await createWorld()
  const { bug, trails } = buggy()
  const log = createLog({ store: world.store, events: bank })
  for (let i = 1; i <= lanes; i++) await log.append(`k${i}`, [credited(1), debited(i), credited(2)])
  const engine = world.engine([trails])
  await world.settle(engine)
  const operator = createOperator({ store: world.store, subscriptions: [trails], by: 'ada', ...world.runtime })
  const finish = async ({ id }: Redrive): Promise<Redrive> => {
    for (let i = 0; i < 100; i++) {
      const redrive = await operator.findRedrive(id)
      if (redrive.status !== 'running') return redrive
      await world.runtime.advance(250)
    }
    throw new Error('It does not end.')
  }
  return {
    world,
    bug,
    trails,
    log,
    engine,
    operator,
    finish,
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  }
}

const why = { reason: 'fixed in 1.2' }
const name = (position: number) => ({ subscription: 'trails', position })

describe('a night of an operator', () => {
  it('ends with everything in its place, and all of it in the audit', async () => {
    await using night = await createNight(4)
    const { operator, engine, bug, finish, trails } = night
    bug.isBad = (amount) => amount === 3
    const [incident] = await operator.incidents({ subscription: 'trails' })
    const fingerprint = incident?.fingerprint as string
    expect(incident).toMatchObject({ state: 'open', held: 4, lanes: 4 })

    const dry = await operator.dryRun('trails', { incident: fingerprint })
    expect(dry.lanes.map(({ lane, verdict }) => `${lane} ${verdict}`)).toEqual([
      'k1 pass',
      'k2 pass',
      'k3 fail',
      'k4 pass',
    ])
    await operator.revise(name(8), { data: { amount: 33 } }, 'it was 33')
    expect((await operator.dryRun('trails', { incident: fingerprint })).totals).toMatchObject({ fail: 0, pass: 8 })

    const { digest } = await operator.select('trails', 'redrive', { incident: fingerprint })
    const options = { ...why, expected: digest, canary: true } as const
    const asked = await operator.redrive('trails', { incident: fingerprint }, options)
    expect(await finish(asked.redrive)).toMatchObject({ status: 'done', lanes: 4, letters: 8, byState: { done: 4 } })

    expect((await rowOf(engine, 'k3', trails))?.data).toEqual({ trail: [1, -33, 2] })
    expect(await engine.verify('trails')).toMatchObject({ ok: true, counts: { applied: 12, held: 0, discarded: 0 } })
    expect(await operator.stateAt('trails', 'k3')).toMatchObject({ row: { data: { trail: [1, -33, 2] } }, folded: 3 })
    const steps = await all(operator.steps('trails', 'k3'))
    expect(steps.map(({ outcome, revision }) => [outcome, revision])).toEqual([
      ['folded', undefined],
      ['folded', 1],
      ['folded', undefined],
    ])
    expect(await codeOf(operator.unrevise(name(8), 'no'))).toBe('LETTER_ENDED')
    expect(await codeOf(operator.revise(name(8), { data: { amount: 1 } }, 'no'))).toBe('LETTER_ENDED')
    expect(await codeOf(operator.redrive('trails', { letter: 8 }, why))).toBe('LETTER_ENDED')
    expect(await codeOf(operator.redrive('trails', { all: true }, why))).toBe('REDRIVE_NOTHING')
    expect((await operator.incidents({ subscription: 'trails' }))[0]).toMatchObject({ state: 'resolved', held: 0 })
    expect((await operator.audit()).map(({ act }) => act)).toEqual(['letter.revise', 'redrive'])
    expect(await operator.verifyAudit()).toMatchObject({ ok: true })
  })

  it('leaves letters out without a gap, and says so when it looks back', async () => {
    await using night = await createNight(2)
    const { operator, engine, bug, finish, trails } = night
    bug.isBad = () => false
    const discarded = await finish((await operator.discard('trails', { letter: 2 }, { reason: 'a test' })).redrive)
    const resolved = await finish(
      (await operator.resolve('trails', { lane: 'k2' }, { reason: 'paid by hand' })).redrive,
    )
    expect([discarded, resolved]).toMatchObject([
      { status: 'done', act: 'discard', letters: 2 },
      { status: 'done', act: 'resolve', letters: 2 },
    ])
    for (const key of ['k1', 'k2']) {
      expect((await rowOf(engine, key, trails))?.data).toEqual({ trail: [1, 2] })
      const steps = await all(operator.steps('trails', key))
      expect(steps.map(({ outcome }) => outcome)).toEqual(['folded', 'discarded', 'folded'])
      expect((await operator.stateAt('trails', key)).row).toEqual(await rowOf(engine, key, trails))
    }
    expect((await operator.letter(name(2))).letter).toMatchObject({
      status: 'discarded',
      endedBy: 'ada',
      endedReason: 'a test',
    })
    expect(await engine.verify('trails')).toMatchObject({ ok: true, counts: { applied: 4, discarded: 2, held: 0 } })
  })

  it('has the failures of a redrive in a list, and a canary that stops at the first', async () => {
    await using night = await createNight(6)
    const { operator, bug, finish } = night
    bug.isBad = (amount) => amount === 2
    const stopped = await finish(
      (await operator.redrive('trails', { all: true }, { ...why, canary: [1, 1, 1] })).redrive,
    )
    expect(stopped).toMatchObject({ status: 'stopped', byState: { done: 1, failed: 1, left: 4 } })
    expect(await operator.redriveLanes(stopped.id, { state: 'failed' })).toMatchObject([
      {
        lane: 'k2',
        ordinal: 2,
        position: 5,
        headPosition: 5,
        failure: { message: 'a bug at 2' },
        head: { lane: 'k2', event: { body: '{"amount":2}' } },
      },
    ])
    expect(
      (await operator.redriveLanes(stopped.id, { limit: 2, after: 1 })).map(({ lane, state }) => [lane, state]),
    ).toEqual([
      ['k2', 'failed'],
      ['k3', 'left'],
    ])
    expect((await operator.letter(name(5))).letter.attempts).toHaveLength(2)
    const rest = await finish((await operator.redrive('trails', { all: true }, { ...why, maxFailures: 1 })).redrive)
    expect(rest).toMatchObject({ status: 'done', byState: { done: 4, failed: 1 } })
  })

  it('makes an incident a regression when it comes back', async () => {
    await using night = await createNight(1)
    const { operator, world, bug, finish, log, engine } = night
    bug.isBad = () => false
    await finish((await operator.redrive('trails', { all: true }, why)).redrive)
    bug.isBad = () => true
    await world.runtime.advance(1_000)
    await log.append('k9', [debited(9)])
    await world.settle(engine)
    expect((await operator.incidents({ subscription: 'trails' }))[0]).toMatchObject({ state: 'regressed', held: 1 })
  })

  it('purges what was redriven, and not what was revised or left out', async () => {
    await using night = await createNight(3)
    const { operator, world, bug, finish, engine } = night
    bug.isBad = () => false
    await operator.revise(name(2), { data: { amount: 7 } }, 'typo')
    await finish((await operator.discard('trails', { letter: 5 }, why)).redrive)
    await finish((await operator.redrive('trails', { all: true }, why)).redrive)
    await engine.stop()
    await world.runtime.advance(31 * 86_400_000)
    const seen = await operator.purgeable('trails')
    expect(seen.letters).toBe(4)
    expect(await operator.purge('trails', { reason: 'retention', expected: seen.digest })).toEqual({
      letters: 4,
      left: 2,
    })
    expect((await operator.letters({ subscription: 'trails' })).map(({ event }) => event.position)).toEqual([2, 5])
    const after = world.engine([night.trails])
    await world.settle(after)
    expect(await after.verify('trails')).toMatchObject({ ok: true })
  })

  it('gives two operators who ask at once one attempt for each letter', async () => {
    await using night = await createNight(5)
    const { operator, world, finish, trails } = night
    const bob = createOperator({ store: world.store, subscriptions: [trails], by: 'bob', ...world.runtime })
    const asked = await Promise.allSettled([
      operator.redrive('trails', { all: true }, why),
      bob.redrive('trails', { all: true }, why),
    ])
    for (const one of asked) if (one.status === 'fulfilled') await finish(one.value.redrive)
    const heads = await operator.letters({ subscription: 'trails', status: 'parked' })
    expect(heads.map(({ attempts }) => attempts.length)).toEqual([2, 2, 2, 2, 2])
  })
})

describe('watching a redrive', () => {
  it('tells how far it is until it is over', async () => {
    await using night = await createNight(20)
    const { operator, world, bug } = night
    bug.isBad = () => false
    const { redrive } = await operator.redrive('trails', { all: true }, { ...why, rate: 4 })
    const watching = all(operator.watch(redrive.id, { every: '1s' }))
    await world.runtime.advance(30_000)
    const reports = await watching

    expect(reports.length).toBeGreaterThan(5)
    expect(reports[0]).toMatchObject({
      isOver: false,
      lanesDone: 0,
      lanes: 20,
      lettersPerSecond: 0,
      etaSeconds: undefined,
    })
    expect(reports.at(-1)).toMatchObject({ isOver: true, lanesDone: 20, letters: 40, etaSeconds: 0 })
    for (const [i, { letters }] of reports.entries())
      expect(letters).toBeGreaterThanOrEqual(reports[i - 1]?.letters ?? 0)
    const middle = reports[5]
    expect(middle?.lettersPerSecond).toBeGreaterThan(2)
    expect(middle?.lettersPerSecond).toBeLessThan(8)
    expect(middle?.etaSeconds).toBeGreaterThan(1)
    expect(middle?.etaSeconds).toBeLessThan(15)
  })

  it('ends when nobody wants to know any more, and the redrive goes on', async () => {
    await using night = await createNight(20)
    const { operator, world, bug } = night
    bug.isBad = () => false
    const { redrive } = await operator.redrive('trails', { all: true }, { ...why, rate: 4 })
    const enough = new AbortController()
    const watching = all(operator.watch(redrive.id, { every: '1s', signal: enough.signal }))
    await world.runtime.advance(2_500)
    enough.abort()
    expect((await watching).at(-1)).toMatchObject({ isOver: false })
    await world.runtime.advance(30_000)
    expect(await operator.findRedrive(redrive.id)).toMatchObject({ status: 'done' })
    expect(await codeOf(all(operator.watch('none')))).toBe('REDRIVE_UNKNOWN')
  })

  it('ends with one that is cancelled', async () => {
    await using night = await createNight(20)
    const { operator, world, bug } = night
    bug.isBad = () => false
    const { redrive } = await operator.redrive('trails', { all: true }, { ...why, rate: 2 })
    const watching = all(operator.watch(redrive.id))
    await world.runtime.advance(2_000)
    expect(await operator.cancel(redrive.id, 'too slow')).toBe(true)
    await world.runtime.advance(5_000)
    const last = (await watching).at(-1)
    expect(last).toMatchObject({ isOver: true, redrive: { status: 'cancelled', byState: { pending: 0, running: 0 } } })
    expect(last?.redrive.byState.left).toBeGreaterThan(5)
  })
})

describe('a redrive that nobody works on', () => {
  it('is carried out here, which reads nothing else and leaves', async () => {
    await using night = await createNight(3)
    const { operator, world, engine, bug, log, trails } = night
    await engine.stop()
    bug.isBad = () => false
    const { redrive } = await operator.redrive('trails', { all: true }, why)
    await log.append('k1', [debited(50)])
    const working = operator.ensureWorked(redrive.id)
    await world.runtime.advance(10_000)

    expect(await working).toMatchObject({ by: 'here', redrive: { status: 'done', letters: 6 } })
    const [state] = await world.store.subscriptions.partitions('trails')
    expect(state).toMatchObject({ owner: undefined, checkpoint: { position: 9, counts: { applied: 9, held: 0 } } })
    const after = world.engine([trails])
    await world.settle(after)
    expect((await rowOf(after, 'k1', trails))?.data).toEqual({ trail: [1, -1, 2, -50] })
    expect(await after.verify('trails')).toMatchObject({ ok: true })
  })

  it('is told of where somebody wants to hear it, and nowhere else', async () => {
    await using night = await createNight(1)
    const { operator, world, engine } = night
    await engine.stop()
    const { redrive } = await operator.redrive('trails', { all: true }, why)
    const told: string[] = []
    const note = (_fields: object, message: string) => void told.push(message)
    const working = operator.ensureWorked(redrive.id, { logger: { info: note, warn: note, error: note } })
    await world.runtime.advance(10_000)
    expect(await working).toMatchObject({ redrive: { byState: { failed: 1 } } })
    expect(told).toEqual([expect.stringContaining('held')])
  })

  it('is left to the engine that is there', async () => {
    await using night = await createNight(3)
    const { operator, world, bug } = night
    bug.isBad = () => false
    const { redrive } = await operator.redrive('trails', { all: true }, why)
    const working = operator.ensureWorked(redrive.id)
    await world.runtime.advance(5_000)
    expect(await working).toMatchObject({ by: 'engine', redrive: { status: 'done' } })
    expect((await world.store.subscriptions.partitions('trails'))[0]?.owner).toBeDefined()
  })

  it('is taken over from an engine that goes', async () => {
    await using night = await createNight(20)
    const { operator, world, engine, bug } = night
    bug.isBad = () => false
    const { redrive } = await operator.redrive('trails', { all: true }, { ...why, rate: 4 })
    const working = operator.ensureWorked(redrive.id)
    await world.runtime.advance(2_000)
    await engine.stop()
    await world.runtime.advance(30_000)
    expect(await working).toMatchObject({ by: 'here', redrive: { status: 'done', letters: 40, byState: { done: 20 } } })
  })

  it('is not waited for while its subscription is paused, or when nobody wants it', async () => {
    await using night = await createNight(1)
    const { operator, world, engine } = night
    await engine.stop()
    const { redrive } = await operator.redrive('trails', { all: true }, why)
    await operator.pause('trails', 'maintenance')
    expect(await codeOf(operator.ensureWorked(redrive.id))).toBe('SUBSCRIPTION_PAUSED')
    await operator.resume('trails', 'done')
    const enough = new AbortController()
    enough.abort()
    expect(await operator.ensureWorked(redrive.id, { signal: enough.signal })).toMatchObject({
      redrive: { status: 'running' },
    })
    expect(await codeOf(operator.ensureWorked('none'))).toBe('REDRIVE_UNKNOWN')
    const stranger = createOperator({ store: world.store, subscriptions: [], by: 'eve', ...world.runtime })
    expect(await codeOf(stranger.ensureWorked(redrive.id))).toBe('SUBSCRIPTION_UNKNOWN')
  })

  it('is not touched by another version of its projection than the live one', async () => {
    await using night = await createNight(1)
    const { world, engine, operator } = night
    await engine.stop()
    const { redrive } = await operator.redrive('trails', { all: true }, why)
    const next = defineProjection('trails', {
      events: bank,
      version: 2,
      initial: () => ({ trail: [] as number[] }),
      on: {},
    })
    const newer = createOperator({ store: world.store, subscriptions: [next], by: 'eve', ...world.runtime })
    expect(await codeOf(newer.ensureWorked(redrive.id))).toBe('PROJECTION_VERSION')
    expect(await codeOf(newer.dryRun('trails', { all: true }))).toBe('PROJECTION_VERSION')
    expect(await codeOf(newer.reset('trails', 'x'))).toBe('PROJECTION_VERSION')
    expect(await operator.findRedrive(redrive.id)).toMatchObject({ status: 'running', letters: 0 })
  })
})

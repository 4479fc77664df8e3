import { createBreaker, defineHandler } from 'holdfast'
import { defineSqlProjection } from 'holdfast/sqlite'
import { describe, expect, it } from 'vitest'
import { balances, bank } from '../fixtures.ts'
import { codeOf, createScene, type Scene } from './scene.ts'

describe('what an operator does to a subscription', () => {
  it('pauses and resumes it, with who and why', async () => {
    await using scene = await createScene()
    const { operator, world } = scene
    await operator.pause('balances', 'migration')
    expect((await world.store.subscriptions.partitions('balances'))[0]?.pause).toMatchObject({ reason: 'migration' })
    await operator.resume('balances', 'done')
    expect((await world.store.subscriptions.partitions('balances'))[0]?.pause).toBeUndefined()
    expect(await operator.audit()).toMatchObject([
      {
        act: 'subscription.pause',
        target: 'balances',
        reason: 'migration',
        details: { wasPaused: false, isPaused: true },
      },
      { act: 'subscription.resume', target: 'balances', reason: 'done', details: { wasPaused: true, isPaused: false } },
    ])
    expect(await codeOf(operator.pause('other', 'x'))).toBe('SUBSCRIPTION_UNKNOWN')
    expect(await codeOf(operator.pause('balances', ''))).toBe('OPTION_INVALID')
    expect(await operator.audit()).toHaveLength(2)
  })

  it('begins a projection anew, and says what was there', async () => {
    await using scene = await createScene()
    const { operator, world, engine } = scene
    const report = await operator.reset('balances', 'the rule changed')
    expect(report).toMatchObject({ before: { applied: 2, held: 4 }, letters: 4, lanes: 2 })
    await world.runtime.advance(1_000)
    await world.settle(engine)
    expect(await engine.verify('balances')).toMatchObject({ ok: true, counts: { applied: 2, held: 4 } })
    expect(await operator.audit()).toMatchObject([
      { act: 'subscription.reset', details: { appliedBefore: 2, heldBefore: 4, lanesBefore: 2, appliedAfter: 0 } },
    ])
  })

  it('begins nothing anew that can not', async () => {
    const mail = defineHandler('mail', { events: bank, on: {} })
    const sql = defineSqlProjection('journal', { events: bank, on: {} })
    await using scene = await createScene([mail, sql, balances])
    expect(await codeOf(scene.operator.reset('mail', 'x'))).toBe('OPTION_INVALID')
    expect(await codeOf(scene.operator.reset('journal', 'x'))).toBe('OPTION_INVALID')
    expect(await codeOf(scene.operator.reset('other', 'x'))).toBe('SUBSCRIPTION_UNKNOWN')
    expect(await scene.operator.audit()).toEqual([])
  })
})

describe('what an operator does to a breaker', () => {
  it('opens it for everybody, and closes it again', async () => {
    await using scene = await createScene()
    const { operator, world } = scene
    const breaker = createBreaker({ store: world.store, name: 'bank', ...world.runtime })
    expect((await breaker.state()).state).toBe('closed')
    await operator.isolateBreaker('bank', 'they asked us to stop', { new: true })
    await world.runtime.advance(2_000)
    expect(await breaker.state()).toMatchObject({ state: 'isolated', by: 'ada', reason: 'they asked us to stop' })
    await operator.resetBreaker('bank', 'they are back')
    await world.runtime.advance(2_000)
    expect(await breaker.state()).toMatchObject({ state: 'closed', reset: { by: 'ada' } })
    expect(await operator.audit()).toMatchObject([
      {
        act: 'breaker.isolate',
        target: 'bank',
        reason: 'they asked us to stop',
        details: { before: 'closed', after: 'isolated' },
      },
      {
        act: 'breaker.reset',
        target: 'bank',
        reason: 'they are back',
        details: { before: 'isolated', after: 'closed' },
      },
    ])
    expect(await codeOf(operator.isolateBreaker('a\nb', 'x'))).toBe('NAME_INVALID')
    await breaker.close()
  })

  it('comes through beside others who change it', async () => {
    await using scene = await createScene()
    const [ada, bob] = [scene.operatorBy('ada'), scene.operatorBy('bob')]
    await ada.isolateBreaker('bank', 'zero', { new: true })
    const acts = Promise.all([
      ada.isolateBreaker('bank', 'one'),
      bob.isolateBreaker('bank', 'two'),
      ada.resetBreaker('bank', 'three'),
    ])
    await scene.world.runtime.advance(5_000)
    await acts
    expect(await ada.audit()).toHaveLength(4)
    expect(await ada.verifyAudit()).toMatchObject({ ok: true, entries: 4 })
  })
})

/** As if these had gone through: letters that the engine resolved. */
async function resolveAll({ world }: Scene): Promise<void> {
  const { DatabaseSync } = await import('node:sqlite')
  const db = new DatabaseSync(world.store.file)
  db.prepare(
    "UPDATE holdfast_letters SET status = 'resolved', ended_at = ?, ended_by = 'engine' WHERE position <> 5",
  ).run(world.runtime.clock.now())
  db.close()
}

describe('a purge', () => {
  it('takes what was resolved long ago, after it was reported', async () => {
    await using scene = await createScene()
    const { operator, world } = scene
    await scene.engine.stop()
    await resolveAll(scene)
    const none = await operator.purgeable('balances')
    expect(none.letters).toBe(0)
    await world.runtime.advance(30 * 86_400_000 + 1_000)
    const seen = await operator.purgeable('balances')
    expect(seen.letters).toBe(3)
    expect(await operator.purgeable('balances', { olderThan: '31d' })).toEqual(none)
    expect(await codeOf(operator.purge('balances', { reason: 'x', expected: none.digest }))).toBe('PURGE_CHANGED')
    expect(await operator.audit()).toEqual([])
    const { letters } = await operator.purge('balances', { reason: 'retention', expected: seen.digest })

    expect(letters).toBe(3)
    expect((await operator.letters({ subscription: 'balances' })).map(({ event }) => event.position)).toEqual([5])
    expect(await operator.audit()).toMatchObject([
      { act: 'letters.purge', target: 'balances', reason: 'retention', details: { letters: 3, lettersBefore: 3 } },
    ])
    expect(await operator.purge('balances', { reason: 'retention' })).toMatchObject({ letters: 0 })
    expect(await operator.audit()).toHaveLength(1)
    expect(await codeOf(operator.purge('other', { reason: 'x' }))).toBe('SUBSCRIPTION_UNKNOWN')
  })
})

describe('the audit', () => {
  async function withDeeds() {
    const scene = await createScene()
    for (const reason of ['one', 'two', 'three', 'four']) await scene.operator.pause('balances', reason)
    return scene
  }

  /** As somebody would who has the file, and has taken away the triggers. */
  async function forge({ world }: Scene, sql: string): Promise<void> {
    const { DatabaseSync } = await import('node:sqlite')
    const db = new DatabaseSync(world.store.file)
    db.exec('DROP TRIGGER holdfast_audit_no_update; DROP TRIGGER holdfast_audit_no_delete')
    db.exec(sql)
    db.close()
  }

  it('is read in order, page by page', async () => {
    await using scene = await withDeeds()
    const { operator } = scene
    expect((await operator.audit({ limit: 2 })).map(({ reason }) => reason)).toEqual(['one', 'two'])
    expect((await operator.audit({ after: 2 })).map(({ reason }) => reason)).toEqual(['three', 'four'])
    const report = await operator.verifyAudit()
    expect(report).toMatchObject({ ok: true, entries: 4, flaw: undefined, head: { number: 4 } })
    expect(await operator.verifyAudit({ expected: report.head })).toMatchObject({ ok: true })
  })

  it('is empty before anybody did anything', async () => {
    await using scene = await createScene()
    const { operator } = scene
    const report = await operator.verifyAudit()
    expect(report).toMatchObject({ ok: true, entries: 0, head: { number: 0 } })
    await operator.pause('balances', 'one')
    expect(await operator.verifyAudit({ expected: report.head })).toMatchObject({ ok: true, entries: 1 })
  })

  it.for([
    ['a word was changed', "UPDATE holdfast_audit SET reason = 'other' WHERE number = 2", 'entry 2 was changed'],
    ['who did it was changed', "UPDATE holdfast_audit SET by = 'bob' WHERE number = 3", 'entry 3 was changed'],
    ['details were changed', "UPDATE holdfast_audit SET details = '{}' WHERE number = 1", 'entry 1 was changed'],
    ['an entry is gone', 'DELETE FROM holdfast_audit WHERE number = 2', 'entry 2 is missing'],
    ['the first is gone', 'DELETE FROM holdfast_audit WHERE number = 1', 'entry 1 is missing'],
    [
      'the hash was mended too',
      "UPDATE holdfast_audit SET reason = 'x', hash = 'f' WHERE number = 2",
      'entry 2 was changed',
    ],
  ] as const)('tells when %s', async ([, sql, flaw]) => {
    await using scene = await withDeeds()
    await forge(scene, sql)
    expect(await scene.operator.verifyAudit()).toMatchObject({ ok: false, flaw })
  })

  it('tells with a noted end when the last entries were cut off, and when all were made anew', async () => {
    await using scene = await withDeeds()
    const { operator } = scene
    const { head } = await operator.verifyAudit()
    await forge(scene, 'DELETE FROM holdfast_audit WHERE number > 2')
    expect(await operator.verifyAudit()).toMatchObject({ ok: true, entries: 2 })
    expect(await operator.verifyAudit({ expected: head })).toMatchObject({
      ok: false,
      flaw: 'entries 3 to 4 are missing',
    })
    for (const reason of ['five', 'six']) await operator.pause('balances', reason)
    expect(await operator.verifyAudit()).toMatchObject({ ok: true, entries: 4 })
    expect(await operator.verifyAudit({ expected: head })).toMatchObject({
      ok: false,
      flaw: 'entry 4 differs from the expected head',
    })
  })
})

import { createEngine, createLog, createOperator, defineHandler, definePolicy, park, type Store } from 'holdfast'
import { expect, it } from 'vitest'
import { balances, bank, credited, debited } from '../fixtures.ts'
import { all } from '../operator/scene.ts'
import { createTemporaryStore } from 'holdfast/testing'
import { describeStores } from '../rebuild/stores.ts'

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

function createMails() {
  const sent: string[] = []
  const mails = defineHandler('mails', {
    events: bank,
    failure: definePolicy({ permanent: park, unknown: park }),
    on: {
      Credited: ({ id }) => void sent.push(id),
      Debited: ({ id }) => {
        sent.push(id)
        throw new TypeError('no such account')
      },
    },
  })
  return { sent, mails }
}

/** Letters of a store in which one event was delivered and one is held, with what came before them. */
async function exported(): Promise<string[]> {
  await using store = await createTemporaryStore()
  const { mails } = createMails()
  await createLog({ store, events: bank }).append('a', [credited(1), debited(2)])
  await using engine = createEngine({ store, subscriptions: [balances, mails], logger: silent })
  await engine.start()
  await engine.drain()
  const operator = createOperator({ store, subscriptions: [balances, mails], by: 'ada' })
  return await all(operator.exportLetters({ query: { subscription: 'mails' }, reason: 'to see it', history: true }))
}

async function imported(store: Store, subscriptions: Parameters<typeof createOperator>[0]['subscriptions']) {
  const operator = createOperator({ store, subscriptions, by: 'ada' })
  const { events } = await operator.importLetters(await exported(), { reason: 'to see it' })
  expect(events).toBe(2)
  return operator
}

describeStores('a store that letters were imported into', (open) => {
  it('runs nothing until effects are allowed', async () => {
    await using place = await open()
    const { sent, mails } = createMails()
    const subscriptions = [balances, mails]
    await imported(place.store, subscriptions)
    const engine = createEngine({ store: place.store, subscriptions, logger: silent })
    await expect(engine.start()).rejects.toMatchObject({
      code: 'STORE_IMPORTED',
      hint: expect.stringMatching(/--allow-effects.*allowEffects: true/),
    })
    await engine.stop()
    expect(sent).toEqual([])
    await using allowed = createEngine({ store: place.store, subscriptions, logger: silent, allowEffects: true })
    await allowed.start()
    await allowed.drain()
    expect(sent).toHaveLength(2)
    expect(await allowed.letters({ subscription: 'mails' })).toMatchObject([{ status: 'parked' }])
  })

  it('is refused while an engine runs on the store, which would process the events', async () => {
    await using place = await open()
    const { sent, mails } = createMails()
    await using engine = createEngine({ store: place.store, subscriptions: [mails], logger: silent })
    await engine.start()
    await expect.poll(async () => (await place.store.subscriptions.load('mails', 0))?.owner).toBeDefined()
    const operator = createOperator({ store: place.store, subscriptions: [mails], by: 'ada' })
    await expect(operator.importLetters(await exported(), { reason: 'to see it' })).rejects.toMatchObject({
      code: 'STORE_IN_USE',
    })
    await engine.drain()
    expect(sent).toEqual([])
    await engine.stop()
    expect(await operator.importLetters(await exported(), { reason: 'to see it' })).toMatchObject({ events: 2 })
  })

  it('asks the audit once, however many subscriptions there are', async () => {
    await using place = await open()
    let asked = 0
    const { audit } = place.store
    const has: typeof audit.has = (act) => {
      asked += 1
      return audit.has(act)
    }
    const store = { ...place.store, audit: { ...audit, has } }
    await using engine = createEngine({ store, subscriptions: [balances, createMails().mails], logger: silent })
    await engine.start()
    expect(asked).toBe(1)
  })

  it('is not redriven by an operator either', async () => {
    await using place = await open()
    const { sent, mails } = createMails()
    const operator = await imported(place.store, [mails])
    const engine = createEngine({ store: place.store, subscriptions: [mails], logger: silent, allowEffects: true })
    await engine.start()
    await engine.drain()
    await engine.stop()
    sent.length = 0
    const { redrive } = await operator.redrive('mails', { all: true }, { reason: 'x' })
    await expect(operator.ensureWorked(redrive.id)).rejects.toMatchObject({ code: 'STORE_IMPORTED' })
    expect(sent).toEqual([])
    expect(await operator.ensureWorked(redrive.id, { allowEffects: true })).toMatchObject({ by: 'here' })
    expect(sent).toHaveLength(1)
  })

  it('is known for it also where the store could not be asked at first', async () => {
    await using place = await open()
    const { sent, mails } = createMails()
    await imported(place.store, [mails])
    let isAway = true
    const away = async () => {
      if (!isAway) return
      isAway = false
      throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' })
    }
    const audit = { ...place.store.audit, has: async (act: string) => (await away(), place.store.audit.has(act)) }
    const store = { ...place.store, audit }
    await using engine = createEngine({ store, subscriptions: [mails], logger: silent })
    const failed = new Promise<unknown>((resolve) => {
      engine.on('subscription.state', ({ to }) => void (to.state === 'failed' && resolve(to.error)))
    })
    await engine.start()
    expect(await failed).toMatchObject({ code: 'STORE_IMPORTED' })
    expect(sent).toEqual([])
  })
})

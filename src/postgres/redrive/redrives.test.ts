import { expect, it } from 'vitest'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import type { RedriveProgress } from '../../redrive/redrive.ts'
import type { Store } from '../../store.ts'
import type { Lease } from '../../subscription/subscription-store.ts'
import { begin, claimBy, claimed, commitOf, deedOf, hold, letter, table } from '../../testing/contracts/fixtures.ts'
import { requestOf } from '../../testing/contracts/redrive.ts'

describeServers('redrives of several processes', (server) => {
  const schemas = useSchemas(server)

  it('have each lane once, and no hole in their numbers, however many ask at the same moment', async () => {
    const schema = schemas.readySchema()
    await using one = await schemas.open(schema)
    await using two = await schemas.open(schema)
    const lease = await begin(one.subscriptions)
    const lanes = Array.from({ length: 60 }, (_, i) => `lane-${i % 3}-${i}`)
    await park(one, lease, lanes)
    // Each wants two thirds, so each two have a third in common.
    const wanted = ['-0-', '-1-', '-2-', '-', '-0-', '-'].map((text) => ({ text: `lane${text}` }))
    const asked = await Promise.all(
      wanted.map((filter, i) => (i % 2 === 0 ? one : two).redrives.ask(requestOf(`r${i}`, filter))),
    )
    const taken: string[] = []
    for (const [i, outcome] of asked.entries()) {
      const frozen = await one.redrives.lanes(`r${i}`, undefined, 0, 100)
      expect(frozen.map(({ ordinal }) => ordinal)).toEqual(frozen.map((_, n) => n + 1))
      expect(outcome.outcome === 'asked' ? outcome.redrive.lanes : 0).toBe(frozen.length)
      taken.push(...frozen.map(({ lane }) => lane))
    }
    expect(taken.toSorted()).toEqual(lanes.toSorted())
    const deeds = await one.audit.list(0, 100)
    expect(deeds.length).toBe(asked.filter(({ outcome }) => outcome === 'asked').length)
  })

  it('begin each stage once, whoever sees first that the one before is over', async () => {
    const schema = schemas.readySchema()
    await using one = await schemas.open(schema)
    await using two = await schemas.open(schema)
    const lease = await begin(one.subscriptions)
    await park(one, lease, ['a', 'b', 'c', 'd', 'e', 'f'])
    await one.redrives.ask(requestOf('r', {}, { stages: [1, 3, 5] }))
    for (const [lane, admitted] of [['a', 3] as const, ['b', 3] as const, ['c', 5] as const]) {
      await report(one, lease, { redrive: 'r', lane, state: 'done', letters: 1 })
      await Promise.all([one, two, one, two].map((store) => store.redrives.advance('s')))
      expect((await one.redrives.find('r'))?.admitted).toBe(admitted)
    }
  })

  it('let go what was cancelled in their hands, although another has the lane by then', async () => {
    const schema = schemas.readySchema()
    await using store = await schemas.open(schema)
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a'])
    await store.redrives.ask(requestOf('first'))
    expect(await store.redrives.due('s', 0, 1)).toHaveLength(1)
    await store.redrives.cancel('first', deedOf('cancel'))
    expect((await store.redrives.ask(requestOf('second'))).outcome).toBe('asked')
    await report(store, lease, { redrive: 'first', lane: 'a', state: 'running', letters: 1 })
    await report(store, lease, { redrive: 'first', lane: 'a', state: 'done', letters: 2 })
    expect(await store.redrives.lanes('first', undefined, 0, 9)).toMatchObject([{ state: 'done', letters: 3 }])
    expect(await store.redrives.lanes('second', undefined, 0, 9)).toMatchObject([{ state: 'pending' }])
  })

  it('add up what a commit says of a lane more than once', async () => {
    await using store = await schemas.open(schemas.readySchema())
    const lease = await begin(store.subscriptions)
    await park(store, lease, ['a', 'b'])
    await store.redrives.ask(requestOf('r'))
    const of = (lane: string, state: RedriveProgress['state'], letters: number) => ({
      redrive: 'r',
      lane,
      state,
      letters,
    })
    await report(store, lease, of('a', 'running', 2), of('b', 'passed', 0), of('a', 'failed', 3))
    expect((await store.redrives.lanes('r', undefined, 0, 9)).map(({ state, letters }) => [state, letters])).toEqual([
      ['failed', 5],
      ['passed', 0],
    ])
  })

  it('wake the others when they are asked for', async () => {
    const schema = schemas.readySchema()
    await using one = await schemas.open(schema)
    await using two = await schemas.open(schema)
    const lease = await begin(one.subscriptions)
    await park(one, lease, ['a'])
    // The listener wakes once when it is up.
    await two.subscriptions.attend({ owner: 'two', subscriptions: ['s'], leaseMs: 1_000 })
    const woken = new Promise<void>((resolve) => two.subscriptions.onRelease(resolve))
    await one.redrives.ask(requestOf('r'))
    await expect(woken).resolves.toBeUndefined()
  })

  it('and revisions never have the same letter', async () => {
    const schema = schemas.readySchema()
    await using one = await schemas.open(schema)
    await using two = await schemas.open(schema)
    const lease = await begin(one.subscriptions)
    const lanes = Array.from({ length: 12 }, (_, i) => `lane${i}`)
    const positions = await park(one, lease, lanes)
    const outcomes = await Promise.all(
      lanes.map(async (lane, i) => {
        const name = { subscription: 's', position: positions[i] as number }
        const [asked, revised] = await Promise.all([
          one.redrives.ask(requestOf(lane, { lane })),
          two.letters.revise(name, '{}', deedOf('revise')),
        ])
        return [asked.outcome, revised.outcome, (await one.letters.revisions(name)).length] as const
      }),
    )
    for (const [asked, revised, revisions] of outcomes) {
      expect(asked).toBe('asked')
      // Before it was asked for, or not at all.
      expect(['revised', 'busy']).toContain(revised)
      expect(revisions).toBe(revised === 'revised' ? 1 : 0)
    }
    const name = { subscription: 's', position: positions[0] as number }
    expect(await two.letters.revise(name, '{}', deedOf('revise'))).toEqual({ outcome: 'busy' })
  })

  it('find nothing by what can not be stored, and refuse to store it', async () => {
    await using store = await schemas.open(schemas.readySchema())
    const lease = await begin(store.subscriptions)
    const [position] = await park(store, lease, ['a'])
    for (const odd of ['\0', '\ud800']) {
      for (const filter of [{ lane: odd }, { type: odd }, { text: odd }, { fingerprint: odd }]) {
        expect(await store.letters.list({ subscription: 's', ...filter })).toEqual([])
        expect(await store.redrives.ask(requestOf('r', filter))).toEqual({ outcome: 'nothing', busy: 0 })
      }
      expect(await store.letters.lane('s', odd)).toBeUndefined()
      expect(await store.letters.incidents({ subscription: 's', fingerprint: odd, limit: 1 })).toEqual([])
      expect(await store.redrives.find(odd)).toBeUndefined()
      const invalid = { code: 'OPTION_INVALID' }
      await expect(store.redrives.ask({ ...requestOf('r'), reason: odd })).rejects.toMatchObject(invalid)
      await expect(store.audit.record({ ...deedOf('look'), target: odd })).rejects.toMatchObject(invalid)
      const name = { subscription: 's', position: position as number }
      await expect(store.letters.revise(name, `"${odd}"`, deedOf('revise'))).rejects.toMatchObject(invalid)
    }
    expect(await store.audit.list(0, 9)).toEqual([])
  })
})

describeServers('the queues of many lanes', (server) => {
  const schemas = useSchemas(server)

  it('come in the order asked for, from the log and from elsewhere, up to the limits', async () => {
    await using store = await schemas.open(schemas.readySchema())
    await store.subscriptions.register({ name: 's', table, start: 0, partitions: 2 })
    const leases: Lease[] = []
    for (const partition of [0, 1])
      leases.push(claimed(await store.subscriptions.claim({ ...claimBy('one'), partition })))
    const [lease, other] = leases as [Lease, Lease]
    for (const key of ['x', 'y']) {
      const body = JSON.stringify(key.repeat(100))
      const event = { type: 'T', schemaVersion: 1, time: '2026-01-01T00:00:00.000Z', body, metadata: '{"n": 1}' }
      await store.log.append(
        key,
        [1, 2, 3, 4].map((n) => ({ ...event, id: `${key}${n}` })),
        'new',
      )
    }
    const { events } = await store.log.readAll(0, { events: 100, bytes: 100_000 })
    // Of y the first is done with.
    const logged = events
      .filter(({ key, version }) => key === 'x' || version !== 1)
      .map((event) => ({
        lane: event.key,
        sequence: event.version as number,
        status: event.version === (event.key === 'x' ? 1 : 2) ? 'parked' : 'queued',
        logged: true,
        event,
        failure: undefined,
      })) as Parameters<typeof hold>[0][]
    const far = (lane: string, sequence: number) => {
      const one = letter(lane, sequence, sequence === 1 ? 'parked' : 'queued', 'z'.repeat(100))
      return { ...one, event: { ...one.event, position: 1_000 + one.event.position } }
    }
    const foreign = [far('f', 2), far('f', 1), far('f', 3)]
    const heads = [...logged, ...foreign].filter(({ status }) => status === 'parked').map((one) => hold(one, 1))
    await store.subscriptions.commit({ ...commitOf(lease), held: [...logged, ...foreign], lanes: heads })
    await store.subscriptions.commit({ ...commitOf(other), held: [far('g', 1)] })
    const lanes = ['f', 'none', 'y', 'g', 'x']
    const ask = async (limits: Partial<{ events: number; bytes: number; perLane: number }>) =>
      (await store.letters.queues('s', 0, lanes, { events: 100, bytes: 100_000, perLane: 100, ...limits })).map(
        (queue) =>
          `${queue.lane}:${queue.letters.map(({ sequence }) => sequence).join()}>${queue.next?.sequence ?? ''}`,
      )
    expect(await ask({})).toEqual(['f:1,2,3>', 'none:>', 'y:2,3,4>', 'g:>', 'x:1,2,3,4>'])
    expect(await ask({ perLane: 2 })).toEqual(['f:1,2>3', 'none:>', 'y:2,3>4', 'g:>', 'x:1,2>3'])
    expect(await ask({ events: 4 })).toEqual(['f:1,2,3>', 'none:>', 'y:2>3'])
    expect(await ask({ events: 3 })).toEqual(['f:1,2,3>'])
    expect(await ask({ bytes: 250 })).toEqual(['f:1,2>3'])
    expect(await ask({ bytes: 1 })).toEqual(['f:1>2'])
    expect(await ask({ bytes: 300 + 102 + 50 })).toEqual(['f:1,2,3>', 'none:>', 'y:2>3'])
    const [queue] = await store.letters.queues('s', 0, ['x'], { events: 1, bytes: 1_000, perLane: 1 })
    const [listed] = await store.letters.list({ subscription: 's', lane: 'x' })
    expect(queue?.letters[0]).toEqual(listed)
  })
})

async function park(store: Store, lease: Lease, lanes: readonly string[]): Promise<number[]> {
  const held = lanes.map((lane) => letter(lane, 1, 'parked'))
  await store.subscriptions.commit({ ...commitOf(lease), held, lanes: held.map((one) => hold(one, 1)) })
  return held.map(({ event }) => event.position)
}

async function report(store: Store, lease: Lease, ...redriven: RedriveProgress[]): Promise<void> {
  expect(await store.subscriptions.commit({ ...commitOf(lease), redriven })).toEqual({ outcome: 'committed' })
}

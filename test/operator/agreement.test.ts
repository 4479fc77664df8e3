import { createLog, createOperator, defineProjection } from 'holdfast'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { bank, createWorld, credited, debited } from '../fixtures.ts'

// What an operator is told beforehand and afterwards is what happens.

const amount = fc.integer({ min: 1, max: 6 })
const event = fc.record({ key: fc.constantFrom('a', 'b', 'c'), amount, isDebit: fc.boolean() })
const revision = fc.record({ nth: fc.nat(5), amount })

it('a dry run tells what the redrive does, and looking back gives the rows that are there', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { minLength: 3, maxLength: 15 }),
      fc.array(revision, { maxLength: 2 }),
      fc.constantFrom('redrive', 'discard'),
      // What went through before still does.
      fc.integer({ min: 3, max: 6 }),
      async (events, revisions, act, stillBad) => {
        await using world = await createWorld()
        const bug = { isBad: (paid: number) => paid >= 3 }
        const trails = defineProjection('trails', {
          events: bank,
          initial: () => ({ trail: [] as number[] }),
          on: {
            Credited: (row, { data }) => ({ trail: [...row.trail, data.amount] }),
            Debited: (row, { data }) => {
              if (bug.isBad(data.amount)) throw new RangeError('a bug')
              return { trail: [...row.trail, -data.amount] }
            },
          },
        })
        const log = createLog({ store: world.store, events: bank })
        for (const { key, isDebit, amount: paid } of events)
          await log.append(key, [isDebit ? debited(paid) : credited(paid)])
        const engine = world.engine([trails])
        await world.settle(engine)
        const operator = createOperator({ store: world.store, subscriptions: [trails], by: 'ada', ...world.runtime })
        const held = await operator.letters({ subscription: 'trails' })
        if (held.length === 0) return
        for (const { nth, amount: paid } of revisions) {
          const { position } = (held[nth % held.length] as (typeof held)[number]).event
          await operator.revise({ subscription: 'trails', position }, { data: { amount: paid } }, 'chance')
        }
        bug.isBad = (paid) => paid === stillBad

        const dry = await operator.dryRun('trails', { all: true }, { act })
        const { redrive } = await operator[act]('trails', { all: true }, { reason: 'chance' })
        await world.runtime.advance(3_000)
        expect(await operator.findRedrive(redrive.id)).toMatchObject({ status: 'done' })

        const lanes = await operator.redriveLanes(redrive.id)
        expect(dry.lanes.map(({ lane, verdict }) => [lane, verdict === 'pass' ? 'done' : 'failed'])).toEqual(
          lanes.map(({ lane, state }) => [lane, state]),
        )
        for (const { lane, letters, changes } of dry.lanes) {
          const isChanged = letters.some(({ outcome }) => outcome.outcome === 'applied')
          expect(changes.map(({ after }) => after)).toEqual(isChanged ? [await engine.read(trails).get(lane)] : [])
        }
        for (const key of ['a', 'b', 'c']) {
          const row = await engine.read(trails).get(key)
          const { row: folded } = await operator.stateAt('trails', key)
          expect(folded).toEqual(row && { version: row.version, data: row.data })
        }
        expect(await engine.verify('trails')).toMatchObject({ ok: true, differences: [] })
        expect(await operator.verifyAudit()).toMatchObject({ ok: true })
      },
    ),
    { numRuns: 25 },
  )
}, 60_000)

import { createLog, createOperator, defineHandler, defineProjection, failure } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, debited } from '../fixtures.ts'
import { engineOf } from '../rebuild/bank.ts'
import { describeStores } from '../rebuild/stores.ts'

describeStores('people beside the engine', (open) => {
  it('cancel, ask, revise and look all the time: nobody is turned away, and everything adds up', {
    timeout: 60_000,
  }, async () => {
    await using place = await open()
    const { store } = place
    const bug = { isThere: true }
    const trails = defineProjection('trails', {
      events: bank,
      initial: () => ({ trail: [] as number[] }),
      on: {
        Debited: (row, { data }) => {
          if (bug.isThere) throw new RangeError('a bug')
          return { trail: [...row.trail, data.amount] }
        },
      },
    })
    const done = new Map<string, number[]>()
    const notes = defineHandler('notes', {
      events: bank,
      on: {
        Debited: ({ key, data }) => {
          if (bug.isThere) throw failure.permanent('no')
          done.set(key, [...(done.get(key) ?? []), data.amount])
        },
      },
    })
    const log = createLog({ store, events: bank })
    const keys = Array.from({ length: 600 }, (_, i) => `k${i}`)
    for (const key of keys) await log.append(key, [debited(1), debited(2)])
    await using engine = engineOf(store, [trails, notes])
    await engine.start()
    await engine.drain()
    bug.isThere = false
    const codes = new Set<string>()
    const odd: unknown[] = []
    const acts = async (by: string, turns: number) => {
      const operator = createOperator({ store, subscriptions: [trails, notes], by })
      for (let i = 0; i < turns; i++) {
        for (const name of ['trails', 'notes']) {
          try {
            const { redrive } = await operator.redrive(name, { all: true }, { reason: 'x', rate: 3_000 })
            await new Promise((resolve) => setTimeout(resolve, (i * 7) % 40))
            await operator.cancel(redrive.id, 'y')
            const [letter] = await operator.letters({ subscription: name, status: 'parked', limit: 1 })
            if (letter)
              await operator.revise(
                { subscription: name, position: letter.event.position },
                { data: { amount: 1 } },
                'z',
              )
          } catch (error) {
            const { code } = error as { code?: string }
            codes.add(String(code))
            if (!['REDRIVE_NOTHING', 'REDRIVE_BUSY', 'LETTER_BUSY', 'LETTER_ENDED'].includes(String(code)))
              odd.push(error)
          }
        }
      }
    }
    await Promise.all([acts('ada', 25), acts('bob', 25)])
    expect(odd).toEqual([])
    const operator = createOperator({ store, subscriptions: [trails, notes], by: 'eve' })
    for (const name of ['trails', 'notes']) {
      for (let i = 0; i < 20 && (await operator.select(name, 'redrive', { all: true })).lanes > 0; i++) {
        const { redrive } = await operator.redrive(name, { all: true }, { reason: 'last' })
        await operator.ensureWorked(redrive.id)
      }
      await engine.drain()
      expect(await engine.verify(name)).toMatchObject({
        ok: true,
        differences: [],
        counts: { held: 0, applied: 1_200 },
      })
    }
    for (const key of keys) {
      expect((await engine.read(trails).get(key))?.data).toEqual({ trail: [1, 2] })
      expect(done.get(key)).toEqual([1, 2])
    }
    expect(await operator.verifyAudit()).toMatchObject({ ok: true })
  })
})

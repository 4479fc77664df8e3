import { createLog, createOperator, defineProjection } from 'holdfast'
import { expect, it } from 'vitest'
import { bank, credited, debited } from '../fixtures.ts'
import { codeOf } from '../operator/scene.ts'
import { engineOf, first, second, silent } from '../rebuild/bank.ts'
import { describeStores } from '../rebuild/stores.ts'
import { rebuild, switchRebuild } from '../acts.ts'

/** Holds debits, as the first version did. */
const strict = defineProjection('balances', {
  version: 2,
  events: bank,
  initial: () => ({ balance: 0, moves: 0 }),
  on: {
    Credited: (row, { data }) => ({ balance: row.balance + data.amount, moves: row.moves + 1 }),
    Debited: () => {
      throw new RangeError('a debt')
    },
  },
})

describeStores('a program with a version that is not live any more', (open) => {
  async function switched(to: typeof second | typeof strict) {
    const place = await open()
    const { store } = place
    const log = createLog({ store, events: bank })
    await log.append('a', [credited(1), debited(5), credited(7)])
    await log.append('b', [credited(2)])
    const old = engineOf(store, [first])
    await old.start()
    await old.drain()
    await old.stop()
    await rebuild(to, { store, logger: silent })
    await switchRebuild(to, { store, logger: silent })
    return { place, store, operator: createOperator({ store, subscriptions: [first], by: 'ada' }) }
  }

  it('does not reset the one that is', async () => {
    const { place, store, operator } = await switched(second)
    await using _ = place
    expect(await codeOf(operator.reset('balances', 'begin anew'))).toBe('PROJECTION_VERSION')
    const [state] = await store.subscriptions.partitions('balances')
    expect(state?.checkpoint.position).toBeGreaterThan(0)
  })

  it('does not verify it: its rows are those of other code', async () => {
    const { place, store } = await switched(second)
    await using _ = place
    const engine = engineOf(store, [first])
    expect(await codeOf(engine.verify('balances'))).toBe('PROJECTION_VERSION')
    expect(await engineOf(store, [second]).verify('balances')).toMatchObject({ ok: true })
  })

  it('tries nothing of it, and does not look back', async () => {
    const { place, operator } = await switched(strict)
    await using _ = place
    expect(await codeOf(operator.dryRun('balances', { all: true }))).toBe('PROJECTION_VERSION')
    expect(await codeOf(operator.stateAt('balances', 'a'))).toBe('PROJECTION_VERSION')
    expect(await codeOf(operator.revise({ subscription: 'balances', position: 2 }, { data: { amount: 1 } }, 'x'))).toBe(
      'nothing was thrown',
    )
  })

  it('does not wait for ever to let its lanes go', async () => {
    const { place, operator } = await switched(strict)
    await using _ = place
    const { redrive } = await operator.redrive('balances', { all: true }, { reason: 'try' })
    const signal = AbortSignal.timeout(5_000)
    expect(await codeOf(operator.ensureWorked(redrive.id, { signal }))).toBe('PROJECTION_VERSION')
  })
})

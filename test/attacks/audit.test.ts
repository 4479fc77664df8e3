import { createOperator } from 'holdfast'
import { expect, it } from 'vitest'
import { credit, engineOf, first, second, silent } from '../rebuild/bank.ts'
import { describeStores } from '../rebuild/stores.ts'
import { rebuild } from '../acts.ts'

describeStores('the audit', (open) => {
  it.for(['a half \ud800 character', 'a \0 in it'])('is whole whatever a person says: %j', async (reason) => {
    await using place = await open()
    const { store } = place
    const engine = engineOf(store, [first])
    await engine.start()
    await credit(store, 3)
    await engine.stop()
    await rebuild(second, { store, logger: silent, by: 'ada', reason }).catch(() => undefined)
    const deed = { by: 'ada', act: 'x', target: 't', reason, at: 1, details: { x: reason } }
    await store.audit.record(deed).catch(() => undefined)
    await store.audit.record({ ...deed, reason: 'well', details: { half: '\ud800', nul: '\0' } })
    const operator = createOperator({ store, subscriptions: [first], by: 'ada' })
    expect(await operator.verifyAudit()).toMatchObject({ ok: true, flaw: undefined })
  })
})

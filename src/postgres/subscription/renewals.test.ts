import { setTimeout } from 'node:timers/promises'
import { Client } from 'pg'
import { expect, it } from 'vitest'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'

const leaseMs = 10_000

describeServers('leases that are renewed together', (server) => {
  const schemas = useSchemas(server)

  async function claimed(partitions: number) {
    const schema = schemas.readySchema()
    const store = await schemas.open(schema)
    const { subscriptions } = store
    await subscriptions.register({ name: 's', table: undefined, kind: 'handler', start: 0, partitions })
    const leases = await Promise.all(
      Array.from({ length: partitions }, async (_, partition) => {
        const claim = await subscriptions.claim({ subscription: 's', partition, owner: 'one', leaseMs })
        if (claim.outcome !== 'claimed') throw new Error(claim.outcome)
        return claim.lease
      }),
    )
    const untils = async () => {
      const { rows } = await schemas.user.query<{ until: string }>(
        `SELECT lease_until::text AS until FROM "${schema}".holdfast_partitions ORDER BY partition`,
      )
      return rows.map(({ until }) => until)
    }
    return { store, subscriptions, leases, schema, untils, [Symbol.asyncDispose]: () => store.close() }
  }

  it('are written by one statement, with one transaction', async () => {
    await using made = await claimed(20)
    const { subscriptions, leases, schema } = made
    const before = new Set(await made.untils())
    expect(await Promise.all(leases.map((lease) => subscriptions.renew(lease, leaseMs)))).toEqual(
      leases.map(() => true),
    )
    const { rows } = await schemas.user.query<{ transactions: string }>(
      `SELECT count(DISTINCT xmin::text) AS transactions FROM "${schema}".holdfast_partitions`,
    )
    expect(Number(rows[0]?.transactions)).toBe(1)
    expect((await made.untils()).some((until) => before.has(until))).toBe(false)
  })

  it('have an answer each, and one that is lost is not renewed', async () => {
    await using made = await claimed(3)
    const { subscriptions, leases } = made
    const [first, lost, last] = leases as [(typeof leases)[0], (typeof leases)[0], (typeof leases)[0]]
    await subscriptions.release(lost)
    const before = await made.untils()
    const asked = [first, lost, last, { ...last, epoch: last.epoch - 1 }]
    expect(await Promise.all(asked.map((lease) => subscriptions.renew(lease, leaseMs)))).toEqual([
      true,
      false,
      true,
      false,
    ])
    expect((await made.untils()).map((until, i) => until === before[i])).toEqual([false, true, false])
  })

  it('do not wait for each other: one whose partition is locked waits alone', async () => {
    await using made = await claimed(3)
    const { subscriptions, leases, schema } = made
    const other = new Client({ connectionString: schemas.url })
    await other.connect()
    try {
      await other.query('BEGIN')
      await other.query(`SELECT FROM "${schema}".holdfast_partitions WHERE partition = 1 FOR UPDATE`)
      const answers = leases.map((lease) => subscriptions.renew(lease, leaseMs))
      expect(await Promise.all([answers[0], answers[2]])).toEqual([true, true])
      expect(await Promise.race([answers[1], setTimeout(100, 'waits')])).toBe('waits')
      await other.query('COMMIT')
      expect(await answers[1]).toBe(true)
    } finally {
      await other.end()
    }
  })

  it('are refused together when the store is closed', async () => {
    const { subscriptions, leases, store } = await claimed(2)
    await store.close()
    for (const answer of leases.map((lease) => subscriptions.renew(lease, leaseMs)))
      await expect(answer).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})

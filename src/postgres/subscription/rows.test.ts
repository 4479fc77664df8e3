import { expect, it } from 'vitest'
import { describeServers } from '../../../test/postgres/databases.ts'
import { useSchemas } from '../../../test/postgres/schemas.ts'
import type { RowQuery, RowWrite, TableSpec } from '../../projection/row-store.ts'
import { begin, commitOf, row, table } from '../../testing/contracts/fixtures.ts'
import { listSql } from '../connection/list.ts'

const query: RowQuery = { where: [], orderBy: { column: 'balance', direction: 'asc' }, after: undefined, limit: 10 }

describeServers('rows', (server) => {
  const schemas = useSchemas(server)

  it('of integers are compared with fractions and large numbers', async () => {
    await using store = await schemas.open(schemas.readySchema())
    const lease = await begin(store.subscriptions)
    const rows = [1, 2, 3].map((n): RowWrite => ({ ...row(`k${n}`, n), columns: [n, `o${n}`, n > 1] }))
    await store.subscriptions.commit({ ...commitOf(lease), rows })
    const keys = async (...where: RowQuery['where']) =>
      (await store.rows.list(table, { ...query, where })).map(({ key }) => key)
    expect(await keys({ column: 'balance', is: 'gt', value: 1.5 })).toEqual(['k2', 'k3'])
    expect(await keys({ column: 'balance', is: 'lt', value: 1e300 })).toEqual(['k1', 'k2', 'k3'])
    expect(await keys({ column: 'balance', is: 'in', values: [2, 2.5, null] })).toEqual(['k2'])
    expect(await keys({ column: 'balance', is: 'gt', value: null })).toEqual([])
    expect(await keys({ column: 'open', is: 'eq', value: true }, { column: 'owner', is: 'lte', value: 'o2' })).toEqual([
      'k2',
    ])
  })

  it('are listed in the order of an index, page after page', async () => {
    const schema = schemas.readySchema()
    await using store = await schemas.open(schema)
    const lease = await begin(store.subscriptions)
    const rows = Array.from(
      { length: 5_000 },
      (_, i): RowWrite => ({ ...row(`k${i}`, 1), columns: [i % 50, null, null] }),
    )
    await store.subscriptions.commit({ ...commitOf(lease), rows })
    await schemas.user.query(`ANALYZE ${schema}.balances`)
    const after = { value: 20, key: 'k4' }
    const ways: RowQuery[] = [
      { ...query, after },
      { ...query, orderBy: { column: 'balance', direction: 'desc' }, after },
      { ...query, orderBy: { column: 'key', direction: 'asc' }, after: { value: 'k4', key: 'k4' } },
      { ...query, where: [{ column: 'balance', is: 'eq', value: 7 }] },
    ]
    for (const way of ways) expect(await plan(schema, table, way)).not.toMatch(/Seq Scan|Sort/)
  })

  async function plan(schema: string, spec: TableSpec, wanted: RowQuery): Promise<string> {
    const { text, values } = listSql(`${schema}.${spec.name}`, spec, wanted)
    const { rows } = await schemas.user.query({ text: `EXPLAIN ${text}`, values, rowMode: 'array' })
    return rows.flat().join('\n')
  }
})

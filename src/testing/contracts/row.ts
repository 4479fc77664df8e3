import assert from 'node:assert/strict'
import type { RowWrite } from '../../projection/row-store.ts'
import { type Case, table, begin, commitOf, row } from './fixtures.ts'

export const rowCases: Record<string, Case> = {
  'lists rows by column and key, in both directions, page by page': async (store) => {
    const lease = await begin(store.subscriptions)
    const rows: RowWrite[] = [
      { ...row('a', 1), columns: [5, 'x', true] },
      { ...row('b', 1), columns: [null, 'y', false] },
      { ...row('c', 1), columns: [5, null, null] },
      { ...row('d', 1), columns: [-1, 'x', true] },
    ]
    await store.subscriptions.commit({ ...commitOf(lease), rows })
    const keys = async (query: Partial<Parameters<typeof store.rows.list>[1]>) => {
      const order = query.orderBy ?? { column: 'key', direction: 'asc' as const }
      const listed = await store.rows.list(table, { where: [], after: undefined, limit: 10, orderBy: order, ...query })
      return listed.map(({ key }) => key).join('')
    }
    assert.equal(await keys({}), 'abcd')
    assert.equal(await keys({ orderBy: { column: 'balance', direction: 'asc' } }), 'bdac')
    assert.equal(await keys({ orderBy: { column: 'balance', direction: 'desc' } }), 'cadb')
    assert.equal(await keys({ where: [{ column: 'balance', is: 'gte', value: 5 }] }), 'ac')
    assert.equal(await keys({ where: [{ column: 'owner', is: 'eq', value: null }] }), 'c')
    assert.equal(await keys({ where: [{ column: 'open', is: 'eq', value: true }] }), 'ad')
    assert.equal(await keys({ where: [{ column: 'key', is: 'in', values: ['b', 'd', 'zz'] }] }), 'bd')
    assert.equal(await keys({ where: [{ column: 'key', is: 'in', values: [] }] }), '')
    assert.equal(await keys({ where: [{ column: 'owner', is: 'in', values: [null, 'y'] }] }), 'bc')
    await assert.rejects(store.rows.load({ name: 'unheard_of', columns: [] }, ['a']), { code: 'SUBSCRIPTION_UNKNOWN' })
    const paged = async (direction: 'asc' | 'desc') => {
      let after: { value: string | number | boolean | null; key: string } | undefined
      let seen = ''
      for (let page = 0; page < 5; page++) {
        const [next] = await store.rows.list(table, {
          where: [],
          orderBy: { column: 'balance', direction },
          after,
          limit: 1,
        })
        if (!next) return seen
        seen += next.key
        after = { value: next.orderValue, key: next.key }
      }
      return `${seen} and on`
    }
    assert.equal(await paged('asc'), 'bdac')
    assert.equal(await paged('desc'), 'cadb')
  },
}

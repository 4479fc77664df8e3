import { DatabaseSync } from 'node:sqlite'
import { createLog } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { changeLine, shownChanges } from '../../src/cli/output/changes.ts'
import { render } from '../../src/cli/output/style.ts'
import { createPlace } from '../cli/place.ts'

// A difference said `number → number`, or two equal shapes. It says that and how a value changed, without the value; with --reveal, all.

const lines = (before: unknown, after: unknown, isRevealed = false) =>
  shownChanges(before, after, isRevealed).map((change) => render(changeLine(change), false))

describe('a difference', () => {
  it('says what changed, and not into what', () => {
    const before = { amount: 5, name: 'Ada Lovelace', ok: true, tags: ['a'], gone: 'x', kept: 1, at: null }
    const after = { amount: 7, name: 'Grace', ok: false, tags: ['b', 'c'], new: { deep: 'y' }, kept: 1, at: 'now' }
    expect(lines(before, after)).toEqual([
      '~ amount: number, changed',
      '~ name: text of 12 characters → text of 5 characters',
      '~ ok: boolean, changed',
      '~ tags[0]: text of 1 character, changed',
      '+ tags[1]: text of 1 character',
      '- gone: text of 1 character',
      '~ at: null → text of 3 characters',
      '+ new: { deep: string }',
    ])
    expect(lines({ a: 5 }, { a: 7 }, true)).toEqual(['~ a: 5 → 7'])
  })

  it('does not show a key that is a value', () => {
    const changes = lines({ byMail: { 'ada@example.com': 1 }, 'c-4711': 1 }, { byMail: { 'ada@example.com': 2 } })
    expect(changes).toEqual(['~ byMail[…]: number, changed', '- …: number'])
    expect(lines({ 'ada@example.com': { x: [1] } }, { 'ada@example.com': { x: [2] } })).toEqual([
      '~ […].x[0]: number, changed',
    ])
    expect(lines({ 'a"].b': 1 }, { 'a"].b': 2 })).toEqual(['~ […]: number, changed'])
  })

  it('takes what databases have', () => {
    expect(lines({ n: 5n, at: new Date(0) }, { n: 6n, at: new Date(1) })).toEqual([
      '~ n: text of 1 character, changed',
      '~ at: text of 24 characters, changed',
    ])
  })
})

it('edit and dry run show it so, and with --reveal in full, on record', async () => {
  using place = createPlace()
  const store = await place.open()
  const log = createLog({ store })
  await log.raw.append('a', [
    { type: 'Credited', data: { amount: 50 } },
    { type: 'Debited', data: { amount: 471_108, note: 'geheim' } },
  ])
  await store.close()
  await place.call(['start', '--drain'])
  const edit = ['dlq', 'edit', 'balances', '2', '--data', '{"amount":48}', '--dry-run']
  const shown = await place.call(edit)
  expect(shown.stdout).toBe('~ amount: number, changed\n- note: text of 6 characters\n')
  expect(await place.json(edit)).toMatchObject({
    changes: [
      { change: 'changed', path: 'amount', before: { type: 'number' }, after: { type: 'number' } },
      { change: 'removed', path: 'note', before: { type: 'string', length: 6 }, after: null },
    ],
  })
  const full = await place.call([...edit, '--reveal', '--reason', 'to compare'])
  expect(full.stdout).toBe('~ amount: 471108 → 48\n- note: "geheim"\n')
  expect(await place.json(['audit', 'list'])).toMatchObject({
    entries: [{ act: 'reveal', target: 'balances/2', reason: 'to compare' }],
  })

  await place.call(['dlq', 'edit', 'balances', '2', '--data', '{"amount":48}', '--reason', 'a typing error'])
  const dry = ['dlq', 'redrive', 'balances', '--letter', '2', '--dry-run']
  expect((await place.call(dry)).stdout).toContain(
    'a row would change\n    ~ version: number, changed\n    ~ data.balance: number, changed\n',
  )
  expect((await place.call([...dry, '--reveal', '--reason', 'x'])).stdout).toContain('~ data.balance: 50 → 2\n')
})

it('verify names the fields of a row that differ', async () => {
  using place = createPlace()
  const store = await place.open()
  await createLog({ store }).raw.append('a', [{ type: 'Credited', data: { amount: 471_108 } }])
  await store.close()
  await place.call(['start', '--drain'])
  {
    using db = new DatabaseSync(place.file)
    db.exec(`UPDATE balances SET data = '{"balance":471109,"extra":"geheim"}'`)
  }
  const told = await place.call(['verify', 'balances'])
  expect(told.stdout).toContain('    ~ balance: number, changed\n    - extra: text of 6 characters\n')
  expect(told.stdout + told.stderr).not.toMatch(/47110|geheim/)
  const full = await place.call(['verify', 'balances', '--reveal', '--reason', 'x'])
  expect(full.stdout).toContain('    ~ balance: 471109 → 471108\n    - extra: "geheim"\n')
})

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { append, describeCli, why } from './cli-stores.ts'

describeCli('verify after a fold was changed', (open) => {
  it('names the fields that differ without their values, and suggests a version', async () => {
    using place = open()
    await place.json(['migrate'])
    await append(place, 'alice', 'Credited', { amount: 471_108_154 })
    await append(place, 'alice', 'Credited', { amount: 1 })
    await place.call(['start', '--drain'])
    const text = (name: string) => readFileSync(join(place.folder, name), 'utf8')
    const credited = 'Credited: (row, { data }) => ({ balance: row.balance + data.amount })'
    const other =
      "Credited: (row, { data }) => ({ balance: row.balance + 2 * data.amount, by: { 'a@b.example': 1 }, last: null })"
    const code = text('bank.ts').replace(credited, other)
    expect(code).not.toBe(text('bank.ts'))
    writeFileSync(join(place.folder, 'next-bank.ts'), code)
    writeFileSync(
      join(place.folder, 'next.config.ts'),
      text('holdfast.config.ts').replace('./bank.ts', './next-bank.ts'),
    )
    const verify = ['verify', 'balances', '--config', 'next.config.ts']
    const told = await place.call(verify)
    expect(told.code).toBe(3)
    expect(told.stdout).toContain(
      'row alice: 3 fields differ (stored → replayed)\n    ~ balance: number, changed\n    + by: { …: number }\n    + last: null\n',
    )
    expect(told.stderr).toContain('version')
    expect(told.stderr).toContain('holdfast --config next.config.ts projections rebuild balances')
    expect(told.stdout + told.stderr).not.toMatch(/471108154|942216|a@b/)
    expect(await place.json(verify)).toMatchObject({
      subscriptions: [
        {
          differences: [
            {
              kind: 'row',
              key: 'alice',
              changes: [
                { path: 'balance', change: 'changed', before: { type: 'number' }, after: { type: 'number' } },
                { path: 'by', change: 'added', before: null, after: { type: 'object', shape: { '…': 'number' } } },
                { path: 'last', change: 'added', before: null, after: { type: 'null' } },
              ],
            },
          ],
        },
      ],
    })
    const revealed = await place.call([...verify, '--reveal', ...why])
    expect(revealed.stdout).toContain('~ balance: 471108155 → 942216310')
  })
})

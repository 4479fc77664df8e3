import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { append, describeCli, why } from './cli-stores.ts'

// A letter was compared with its event and its newest edit only. An attempt with an earlier or undone edit was shown with the values of that edit.

describeCli('an attempt with an edit that was replaced or undone', (open) => {
  const secrets = /471108|Lovelace/

  it('is shown without the values of that edit', async () => {
    using place = open()
    await place.json(['migrate'])
    await append(place, 'a', 'Debited', { amount: 5, note: 'geheim' })
    await place.call(['start', '--drain'])
    const edit = (...flags: string[]) => place.json(['dlq', 'edit', 'balances', '1', ...flags, ...why])
    await edit('--data', '{"amount":471108,"note":"Lovelace"}')
    const { redrive } = await place.json<{ redrive: { id: string } }>([
      'dlq',
      'redrive',
      'balances',
      '--letter',
      '1',
      ...why,
    ])
    const shown = async () => {
      const commands = [
        ['dlq', 'show', 'balances', '1'],
        ['dlq', 'list'],
        ['dlq', 'incidents'],
        ['redrives', 'show', redrive.id],
      ]
      for (const command of commands)
        for (const flags of [[], ['--json']]) {
          const { stdout } = await place.call([...command, ...flags])
          expect(stdout).toContain('can not take *** for ***')
          expect(stdout).not.toMatch(secrets)
        }
    }
    await edit('--data', '{"amount":815,"note":"no"}')
    await shown()
    await edit('--undo')
    await edit('--undo')
    await shown()
    const revealed = await place.call(['dlq', 'show', 'balances', '1', '--reveal', ...why])
    expect(revealed.stdout).toContain('can not take 471108 for Lovelace')
  })

  it('is verified without the values of that edit', async () => {
    using place = open()
    await place.json(['migrate'])
    await append(place, 'a', 'Credited', { amount: 500_000 })
    await append(place, 'a', 'Debited', { amount: 600_000, note: 'geheim' })
    await place.call(['start', '--drain'])
    await place.json(['dlq', 'edit', 'balances', '2', '--data', '{"amount":471108,"note":"Lovelace"}', ...why])
    await place.json(['dlq', 'redrive', 'balances', '--letter', '2', ...why])
    const text = (name: string) => readFileSync(join(place.folder, name), 'utf8')
    writeFileSync(join(place.folder, 'next-bank.ts'), text('bank.ts').replace('data.amount > row.balance', 'true'))
    const config = text('holdfast.config.ts').replace('./bank.ts', './next-bank.ts')
    writeFileSync(join(place.folder, 'next.config.ts'), config)
    const { stdout, stderr } = await place.call(['verify', 'balances', '--config', 'next.config.ts'])
    expect(stdout).toContain("it can't have been applied: can not take *** for ***")
    expect(stdout).not.toMatch(secrets)
    // The changed fold refuses an event that was applied, so outcomes differ beside the row.
    expect(stderr).toContain('If you changed the fold of balances, give it a new version')
  })
})

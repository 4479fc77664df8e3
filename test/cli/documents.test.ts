import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, vi } from 'vitest'
import { createPlace } from './place.ts'

vi.setConfig({ testTimeout: 90_000 })

const page = readFileSync(fileURLToPath(new URL('../../docs/reference/cli.md', import.meta.url)), 'utf8')
const section = page.split('### Fields of `--json`')[1]?.split('\n## ')[0] ?? ''

/** By command: the fields of the table, in order. What stands in parentheses or behind a colon tells of one. */
const documented = new Map(
  Array.from(section.matchAll(/^\| `([a-z -]+)` \| (.+) \|$/gm), ([, command = '', text = '']) => {
    const plain = text.replaceAll(/\([^)]*\)/g, '').replaceAll(/: each [^;]*/g, '')
    return [command, Array.from(plain.matchAll(/`([a-zA-Z]+)`/g), ([, field = '']) => field)] as const
  }),
)

it('a document has the fields that the reference tells of, and no others', async () => {
  using place = createPlace()
  const why = ['--reason', 'a test']
  const told = new Set<string>()
  const check = async (command: string, ...args: string[]) => {
    told.add(command)
    const { code, ok, ...fields } = await place.json<{ ok: boolean }>([...command.split(' '), ...args])
    expect({ command, ok, code: code === 0 || code === 3 }).toEqual({ command, ok: true, code: true })
    expect({ command, fields: Object.keys(fields).toSorted() }).toEqual({
      command,
      fields: documented.get(command)?.toSorted(),
    })
    return fields as Record<string, unknown>
  }
  await check('init', 'elsewhere')
  await check('config')
  await check('migrate')
  await check('events append', 'a', 'Credited', '--data', '{"amount":1}', ...why)
  for (const key of ['b', 'c', 'd'])
    await place.json(['events', 'append', key, 'Debited', '--data', '{"amount":9}', ...why])
  await check('start', '--drain')
  await check('status')
  await check('doctor')
  await check('subscriptions list')
  await check('subscriptions lag')
  await check('subscriptions pause', 'mails', ...why)
  await check('subscriptions resume', 'mails', ...why)
  await check('projections list')
  await check('projections get', 'balances', 'a')
  await check('projections history', 'balances', 'a')
  await check('projections versions', 'balances')
  await check('dlq list')
  await check('dlq show', 'balances', '2')
  await check('dlq stats')
  await check('dlq incidents')
  await check('dlq redrive --dry-run', 'balances', '--all')
  await check('dlq discard --whole --dry-run', 'balances', '--lane', 'd', ...why)
  await check('dlq discard', 'balances', '--lane', 'd', '--yes', ...why)
  await check('dlq edit', 'balances', '2', '--data', '{"amount":0}', ...why)
  const file = join(place.folder, 'letters.ndjson')
  await check('dlq export', 'balances', '--output', file, ...why)
  const { redrive } = await check('dlq redrive --no-wait', 'balances', '--lane', 'c', ...why)
  const { id } = redrive as { id: string }
  await check('redrives show', id)
  await check('redrives cancel', id, ...why)
  await check('redrives list')
  writeFileSync(join(place.folder, 'fixed'), '')
  await check('dlq redrive', 'balances', '--all', ...why)
  await check('dlq purge', 'balances', '--older-than', '0s', '--yes', ...why)
  await check('verify')
  await check('breakers isolate', 'mails', '--new', ...why)
  await check('breakers list')
  await check('breakers reset', 'mails', ...why)
  await check('events tail')
  await check('events show', '1')
  await check('events history', 'a')
  await check('audit list')
  await check('audit verify')
  await check('completion', 'bash')
  await check('projections reset', 'balances', '--yes', ...why)
  await place.json(['migrate', '--store', 'home.db'])
  await check('dlq import', file, '--store', 'home.db', ...why)
  expect([...documented.keys()].filter((command) => !told.has(command))).toEqual([])
})

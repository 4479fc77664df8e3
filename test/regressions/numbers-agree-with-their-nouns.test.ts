import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { append, why } from './cli-stores.ts'

const plural =
  /\b1 (?:held |earlier |more )?(?:bytes|entries|events|frames|keys|lanes|letters|lines|migrations|partitions|processes|rows|successes|things|times)\b(?!=)/
const singular =
  /\b(?:0|[2-9]|\d+\d) (?:byte|entry|event|frame|key|lane|letter|line|migration|partition|process|row|success|thing|time)\b/

it('one of something is not several', async () => {
  using place = createPlace()
  const said: string[] = []
  const call = async (...args: string[]) => {
    const { stdout, stderr } = await place.call(args)
    said.push(...`${stdout}${stderr}`.split('\n').map((line) => `${args.join(' ')}: ${line}`))
  }
  await call('migrate')
  await append(place, 'a', 'Debited', { amount: 1 })
  await call('start', '--drain')
  await call('status')
  await call('doctor')
  await call('dlq', 'list')
  await call('dlq', 'incidents')
  await call('dlq', 'show', 'balances', '1')
  await call('dlq', 'redrive', 'balances', '--all', '--dry-run')
  await call('dlq', 'discard', 'balances', '--all', '--dry-run')
  await call('dlq', 'discard', 'balances', '--all', ...why)
  await call('dlq', 'discard', 'balances', '--all', '--yes', '--expect', '2', ...why)
  await call('dlq', 'skip', 'balances', '--all', '--dry-run')
  await call('dlq', 'skip', 'balances', '--key', 'a', ...why)
  await call('dlq', 'redrive', 'balances', '--all', '--no-wait', ...why)
  const { redrives } = await place.json<{ redrives: { id: string }[] }>(['redrives', 'list'])
  await call('redrives', 'cancel', redrives[0]?.id ?? '', '--dry-run', ...why)
  await call('redrives', 'cancel', redrives[0]?.id ?? '', ...why)
  await call('projections', 'reset', 'balances', '--dry-run')
  await call('verify')
  await call('events', 'show', '1')
  await call('dlq', 'export', 'balances', '--output', 'one.ndjson', ...why)
  writeFileSync(join(place.folder, 'fixed'), '')
  await call('dlq', 'redrive', 'balances', '--all', ...why)
  await call('dlq', 'purge', 'balances', '--older-than', '1ms', '--dry-run')
  await call('dlq', 'purge', 'balances', '--older-than', '1ms', '--yes', ...why)
  await call('breakers', 'isolate', 'mails', '--new', ...why)
  await call('breakers', 'list')
  await call('audit', 'verify')
  await call('audit', 'list')
  await call('migrate', '--store', 'other.db')
  await call('dlq', 'import', 'one.ndjson', '--store', 'other.db', ...why)
  expect(said.filter((line) => plural.test(line) || singular.test(line))).toEqual([])
  expect(said.join('\n')).toContain('The head of 1 lane of balances will be discarded')
  expect(said.length).toBeGreaterThan(80)
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { describeCli, holdSome, why } from './cli-stores.ts'

const noWait = ['dlq', 'redrive', 'balances', '--all', '--no-wait', ...why]

describeCli('a redrive that nothing runs', (open) => {
  it('says so at once, with the command that runs it', async () => {
    using place = open()
    await holdSome(place)
    writeFileSync(join(place.folder, 'fixed'), '')
    const { stdout, stderr } = await place.call(noWait)
    const id = /queued: (\S+)/.exec(stdout)?.[1] ?? ''
    const waits = `It waits: no engine runs balances.\nNext: holdfast redrives show ${id} --work\n`
    expect(stderr).toBe(`2 lanes of balances will be redriven.\n${waits}`)
    expect((await place.call(['redrives', 'show', id])).stderr).toBe(waits)
    expect(await place.call(['redrives', 'show', id, '--work'])).toMatchObject({ code: 0 })
    expect((await place.call(['redrives', 'show', id])).stderr).toBe('')
  })

  it('says so at once if the subscription is paused', async () => {
    using place = open()
    await holdSome(place)
    await place.json(['subscriptions', 'pause', 'balances', '--reason', 'books closed'])
    const document = await place.json(noWait)
    expect(document).toMatchObject({ waits: 'paused' })
    const { id } = document['redrive'] as { id: string }
    expect((await place.call(['redrives', 'show', id])).stderr).toBe(
      'It waits: balances is paused (books closed).\nNext: holdfast subscriptions resume balances --reason "<why>"\n',
    )
  })
})

it('a redrive that is watched says when nothing runs it, and that the next step is another', async () => {
  using place = createPlace()
  await holdSome(place)
  writeFileSync(join(place.folder, 'fixed'), '')
  await place.json(['subscriptions', 'pause', 'balances', '--reason', 'books closed'])
  const { redrive } = await place.json<{ redrive: { id: string } }>(noWait)
  const watching = place.spawn('redrives', 'show', redrive.id, '--watch')
  await expect.poll(() => watching.output.stderr, { timeout: 20_000 }).toContain('balances is paused (books closed).\n')
  await place.json(['subscriptions', 'resume', 'balances', ...why])
  await expect.poll(() => watching.output.stderr, { timeout: 20_000 }).toContain('no engine runs balances.\n')
  await place.json(['start', '--drain'])
  const { code, stdout, stderr } = await watching.ended
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('2 lanes: 2 done') as string })
  // Each is said once.
  expect(stderr.match(/It waits/g)).toHaveLength(2)
})

import { expect, it } from 'vitest'
import { describeCli, holdSome, why } from './cli-stores.ts'

/** The command that a `Next:` line names, as a shell would split it. */
const nextOf = (stderr: string) => {
  const [, command = ''] = /^Next: .*?holdfast (.*)$/m.exec(stderr) ?? []
  return command.split(' ')
}

describeCli('dlq edit', (open) => {
  it('of a letter that is queued suggests a command that is accepted', async () => {
    using place = open()
    await holdSome(place)
    const edit = ['dlq', 'edit', 'balances', '2', '--data', '{"amount":8}', ...why]
    const { code, stderr } = await place.call(edit)
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('position 1') })
    const next = await place.call(nextOf(stderr))
    // It would fail again; but it was tried, and not refused.
    expect(next).toMatchObject({ code: 3, stdout: expect.stringContaining('would fail') })
  })

  it('--undo says what the letter is tried with from now on', async () => {
    using place = open()
    await holdSome(place)
    const edit = (...more: string[]) => place.call(['dlq', 'edit', 'balances', '1', ...more, ...why])
    expect((await edit('--data', '{"amount":1}')).stderr).toContain('processed with the new data')
    await edit('--data', '{"amount":2}')
    expect((await edit('--undo')).stderr).toContain('Edit 2 was undone. The letter is processed with edit 1.')
    expect((await edit('--undo')).stderr).toContain(
      'Edit 1 was undone. The letter is processed with the original event.',
    )
  })
})

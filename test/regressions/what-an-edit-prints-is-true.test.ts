import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
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

  it('of a text that is not JSON names where the text is, and not the quotes of a shell', async () => {
    using place = open()
    await holdSome(place)
    const script = join(place.folder, 'editor.sh')
    writeFileSync(script, '#!/bin/sh\necho "{ not JSON" > "$1"\n', { mode: 0o755 })
    const args = ['dlq', 'edit', 'balances', '1', '--no-color']
    const typed = await place.call(args, { env: { EDITOR: script }, typed: ['a typo'] })
    expect(typed).toMatchObject({ code: 2 })
    expect(typed.stderr).toContain('USAGE: The text from the editor is not valid JSON.\n')
    expect(typed.stderr).toContain('Next: Nothing was changed. Edit it again, or use --file.\n')
    writeFileSync(join(place.folder, 'new.json'), '{ not JSON')
    const file = await place.call(['dlq', 'edit', 'balances', '1', '--file', 'new.json', ...why])
    expect(file.stderr).toBe('USAGE: The file new.json is not valid JSON.\nNext: Fix the file.\n')
    const option = await place.call(['dlq', 'edit', 'balances', '1', '--data', '{ not JSON', ...why])
    expect(option.stderr).toContain('Next: Put the JSON in single quotes for the shell')
  })
})

import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'

const commands = [['status'], ['doctor'], ['start'], ['migrate'], ['dlq', 'list']]

it('a directory as a store is called one', async () => {
  using place = createPlace()
  mkdirSync(join(place.folder, 'events'))
  for (const args of commands) {
    const { code, stdout, stderr } = await place.call([...args, '--store', 'events'])
    expect({ args, code: code === 1 || code === 3, told: stdout + stderr }).toEqual({
      args,
      code: true,
      told: expect.stringMatching(/STORE_MISSING: .*events is a directory\.\n *Next: Give the file/) as string,
    })
  }
})

const nobody = 65_534

// A superuser may read everything, so the test is another user meanwhile.
it.runIf(process.getuid !== undefined && process.seteuid !== undefined)(
  'a file that this user may not read is not called missing',
  async () => {
    using place = createPlace()
    await place.call(['migrate'])
    // What a command loads is loaded.
    await place.call(['status'])
    chmodSync(place.folder, 0o755)
    chmodSync(place.file, 0o000)
    const own = process.getuid?.() ?? 0
    if (own === 0) process.seteuid?.(nobody)
    try {
      for (const args of [['status'], ['doctor'], ['dlq', 'list']]) {
        const { code, stdout, stderr } = await place.call([...args, '--store', 'events.db'])
        expect({ args, code: code === 1 || code === 3, told: stdout + stderr }).toEqual({
          args,
          code: true,
          told: expect.stringMatching(
            /STORE_UNAVAILABLE: This user may not read .*events\.db\.\n *Next: Run/,
          ) as string,
        })
      }
    } finally {
      if (own === 0) process.seteuid?.(own)
    }
  },
)

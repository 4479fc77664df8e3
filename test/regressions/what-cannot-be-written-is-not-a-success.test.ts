import { closeSync, existsSync, openSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { holdSome } from './cli-stores.ts'

const script = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
const full = '/dev/full'

/** As a shell starts it. Everything written to `full` fails as on a full disk. */
function run(cwd: string, args: string, redirect: string) {
  const command = `"$0" --no-warnings --conditions=@holdfast/source "$1" ${args} ${redirect}`
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command, process.execPath, script], {
    cwd,
    env: { PATH: process.env.PATH, HOLDFAST_USER: 'ada' },
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

const isFullThere = () => {
  if (!existsSync(full)) return false
  closeSync(openSync(full, 'w'))
  return true
}

it.skipIf(!isFullThere())('an export to a full disk fails and says so', async () => {
  using place = createPlace()
  await holdSome(place)
  for (const args of ['dlq export balances --reason backup', 'dlq list', 'dlq list --json', '--help']) {
    const { status, stderr } = run(place.folder, args, `> ${full}`)
    expect({ args, status, stderr }).toMatchObject({ status: 1, stderr: expect.stringContaining('ENOSPC') })
  }
})

it('a reader that closes the pipe early is not a failure', async () => {
  using place = createPlace()
  await holdSome(place)
  const { status, stdout, stderr } = run(place.folder, 'dlq list', '| head -1')
  expect({ status, stdout, stderr }).toMatchObject({ status: 0, stdout: expect.stringMatching(/^subscription.*\n$/) })
  expect(stderr).not.toContain('EPIPE')
})

it.each(['2>&-', `2> ${full}`])('messages that cannot be written (%s) do not change the result', async (redirect) => {
  using place = createPlace()
  await holdSome(place)
  expect(run(place.folder, 'dlq list --json', redirect)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('"ok":true'),
  })
  expect(run(place.folder, 'dlq list', redirect)).toMatchObject({ status: 0 })
})

import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { holdSome } from './cli-stores.ts'

const script = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

/** `holdfast` with these words, as a shell reads them. */
const holdfast = (cwd: string, words: string) =>
  spawnSync('sh', ['-c', `"$0" --no-warnings --conditions=@holdfast/source "$1" ${words}`, process.execPath, script], {
    cwd,
    env: { PATH: process.env.PATH, HOLDFAST_USER: 'ada' },
    encoding: 'utf8',
  })

it('a command in a folder below the project names the configuration above', async () => {
  using place = createPlace()
  await holdSome(place)
  const below = join(place.folder, 'src/deep er')
  mkdirSync(below, { recursive: true })
  for (const words of ['status', 'verify', 'start']) {
    const { stderr, status } = holdfast(below, words)
    expect({ words, status, stderr }).toMatchObject({ status: 2, stderr: expect.stringMatching(/^CONFIG_MISSING: /) })
    const [, next = ''] = /To use it: holdfast (.*)\n/.exec(stderr) ?? []
    expect(next).toBe(`${words} --config ../../holdfast.config.ts`)
    expect(holdfast(below, words === 'start' ? `${next} --drain` : next)).toMatchObject({ status: 0 })
  }
})

it('a syntax error is named with its file and line, also in a file that the configuration imports', () => {
  using place = createPlace({ 'bank.ts': 'export const bank = 1\nexport const x = {\n' })
  const { status, stderr } = holdfast(place.folder, 'status')
  expect({ status, stderr }).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^CONFIG_INVALID: .*SyntaxError: .* \(.*bank\.ts, line \d+\)\n/),
  })
})

it('a configuration in a package of CommonJS is answered with the command that changes it', () => {
  using place = createPlace({ 'package.json': '{"type":"commonjs"}' })
  const { status, stderr } = holdfast(place.folder, 'status')
  expect({ status, stderr }).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^CONFIG_INVALID: .*\nNext: .*npm pkg set type=module\n$/),
  })
})

it('the folder of a new project is quoted for the shell', async () => {
  using place = createPlace()
  expect((await place.call(['init', 'my app'])).stderr).toContain(`cd 'my app'`)
})

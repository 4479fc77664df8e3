import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { createDatabase, describeNewest } from '../postgres/databases.ts'
import { type Done, firstHour, transcript } from './first-hour.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = join(root, 'docs/first-hour.md')

let scratch: string
let onFile: readonly Done[]

/** What a user's folder has after `npm install holdfast zod pg`. */
const folderOf = (name: string) => {
  const folder = join(scratch, name)
  cpSync(join(scratch, 'installed'), folder, { recursive: true, verbatimSymlinks: true })
  return folder
}

beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'holdfast-first-hour-'))
  const [{ filename }] = JSON.parse(npm(root, 'run', '-s', 'package', '--', '--to', scratch)) as [{ filename: string }]
  const installed = join(scratch, 'installed')
  mkdirSync(installed)
  writeFileSync(join(installed, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  npm(installed, 'install', '--prefer-offline', '--ignore-scripts', join(scratch, filename), 'zod@4.6.7', 'pg@8.23.1')
  onFile = firstHour({ folder: folderOf('sqlite') })
})

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

it('every command of the first hour ends as it should, on SQLite', () => {
  expect(onFile.map(({ run, ended, code = 0 }) => [run.join(' '), ended, code])).toEqual(
    onFile.map(({ run, code = 0 }) => [run.join(' '), code, code]),
  )
})

// After a deliberate change: HOLDFAST_RECORD=1 npx vitest run test/package/first-hour.test.ts, and read the diff.
it('docs/first-hour.md is the transcript of that run', () => {
  const [head = ''] = readFileSync(page, 'utf8').split('<!-- transcript -->\n')
  const text = `${head}<!-- transcript -->\n\n${transcript(onFile)}`
  if (process.env.HOLDFAST_RECORD === '1') writeFileSync(page, text)
  expect(readFileSync(page, 'utf8')).toBe(text)
})

describeNewest('the first hour', (server) => {
  it('prints the same as on SQLite', async () => {
    await using database = await createDatabase(server)
    const done = firstHour({ folder: folderOf(database.name), postgres: database.url })
    // The migrations of the two stores have other names.
    const outputs = (all: readonly Done[]) =>
      all.map(({ run, ended, output }) => ({ run, ended, output: run[1] === 'migrate' ? '' : output }))
    expect(outputs(done)).toEqual(outputs(onFile))
  })
})

function npm(cwd: string, ...args: string[]): string {
  // npm hands its own settings down to the scripts it runs; a user's shell has none of them.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS$)/.test(name)))
  return execFileSync('npm', args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

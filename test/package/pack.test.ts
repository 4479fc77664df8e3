import { execFile, spawnSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

// What a user gets is the tarball, not this folder. So: make it, install it in an empty folder, and use it there.

const root = fileURLToPath(new URL('../..', import.meta.url))
const manifest: { exports: Record<string, unknown> } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
const doors = Object.keys(manifest.exports)
  .filter((door) => !door.endsWith('.json'))
  .map((door) => door.replace(/^\./, 'holdfast'))

/** Of a file system, usually. A thousand small files take more of these than they have bytes. */
const block = 4_096
/** It is in every container image of a user. About 5.7 MB today; sources or maps beside the build would exceed it. */
const mostBytesOnDisk = 6_000_000

let scratch: string
let consumer: string
let packed: string[]
let bytesOnDisk: number
let published: { readonly exports: unknown; readonly bin: Record<string, string>; readonly scripts?: unknown }

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'holdfast-pack-'))
  consumer = join(scratch, 'consumer')
  await mkdir(consumer)
  await writeFile(join(consumer, 'package.json'), JSON.stringify({ private: true, type: 'module' }))

  const [tarball] = JSON.parse(await npm(root, 'run', '-s', 'package', '--', '--to', scratch))
  const files = tarball.files as readonly { readonly path: string; readonly size: number }[]
  packed = files.map(({ path }) => path)
  // As `du` counts: a folder takes a block too.
  const folders = new Set(packed.flatMap((path) => foldersOf(path)))
  bytesOnDisk = files.reduce((sum, { size }) => sum + Math.ceil(size / block) * block, folders.size * block)
  // A machine that was never asked for commander by its name has no answer kept, though `npm ci` has brought it.
  await npm(consumer, 'install', '--prefer-offline', '--ignore-scripts', join(scratch, tarball.filename))
  published = JSON.parse(await readFile(join(consumer, 'node_modules/holdfast/package.json'), 'utf8'))
}, 120_000)

afterAll(() => rm(scratch, { recursive: true, force: true }))

describe('the tarball', () => {
  it('has the papers', () => {
    expect(packed).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'CHANGELOG.md', 'package.json']))
  })

  it('has the build with its types, the docs and the examples', () => {
    expect(packed).toEqual(
      expect.arrayContaining(['dist/index.js', 'dist/index.d.ts', 'docs/guide.md', 'examples/quickstart.ts']),
    )
    const folders = new Set(packed.filter((path) => path.includes('/')).map((path) => path.split('/')[0]))
    expect(folders).toEqual(new Set(['dist', 'docs', 'examples']))
  })

  it('has no tests, no sources, no maps and no records of runs', () => {
    expect(
      packed.filter((path) => /\.test\.|\.map$|^(?!examples\/).*(?<!\.d)\.ts$|^docs\/runs\/|node_modules/.test(path)),
    ).toEqual([])
  })

  it(`takes less than ${mostBytesOnDisk / 1e6} MB on a disk`, () => {
    expect(bytesOnDisk).toBeLessThan(mostBytesOnDisk)
  })

  it('names no file that it does not have', () => {
    const named = [...targetsOf(published.exports), ...Object.values(published.bin)].map((path) => path.slice(2))
    expect(named.filter((path) => !packed.includes(path))).toEqual([])
    expect(Object.keys(published)).not.toEqual(expect.arrayContaining(['scripts']))
  })

  it('has every page, picture, example and folder that its pages link to', async () => {
    const pages = packed.filter((path) => path.endsWith('.md'))
    const dead = await Promise.all(
      pages.map(async (page) => {
        const text = await readFile(join(consumer, 'node_modules/holdfast', page), 'utf8')
        const links = Array.from(text.matchAll(/\]\((?!\w+:|#)([^)#\s]+)[^)]*\)/g), ([, link = '']) => link)
        return links
          .filter((link) => {
            const target = posix.join(posix.dirname(page), link)
            return !packed.some((path) => path === target || path.startsWith(`${target}/`))
          })
          .map((link) => `${page}: ${link}`)
      }),
    )
    expect(dead.flat()).toEqual([])
  })
})

/** Of `dist/cli/main.js`: the package itself, `dist` and `dist/cli`. */
function foldersOf(path: string): string[] {
  const folder = posix.dirname(path)
  return folder === '.' ? [folder] : [folder, ...foldersOf(folder)]
}

function targetsOf(target: unknown): string[] {
  return typeof target === 'string' ? [target] : Object.values(target as object).flatMap(targetsOf)
}

describe('installed in an empty folder', () => {
  it.for(doors)('%s opens, from its build', async (door) => {
    const script = `console.log(JSON.stringify({ from: import.meta.resolve('${door}'), names: Object.keys(await import('${door}')) }))`
    const { from, names } = await runIn(process.execPath, 'open.mjs', script)
    expect(from).toContain('/node_modules/holdfast/dist/')
    expect(names).not.toEqual([])
  })

  it('opens from its build for a program with our own condition, which leads to sources here', async () => {
    const script = `console.log(JSON.stringify(import.meta.resolve('holdfast')))`
    await writeFile(join(consumer, 'condition.mjs'), script)
    const from = await run(process.execPath, ['--conditions=@holdfast/source', 'condition.mjs'], consumer)
    expect(JSON.parse(from)).toContain('/node_modules/holdfast/dist/index.js')
  })

  it('the watchdog finds its thread, and ends a loop that never does', async () => {
    const script = `
      import { startWatchdog } from 'holdfast/watchdog'
      startWatchdog({ after: '500ms' }).began('the loop of a user')
      for (;;);`
    await writeFile(join(consumer, 'loop.mjs'), script)
    const { signal, stderr } = spawnSync(process.execPath, ['loop.mjs'], { cwd: consumer, encoding: 'utf8' })
    expect(signal).toBe('SIGKILL')
    expect(stderr).toContain('Started last: the loop of a user.')
  })

  it('the command runs, on a configuration in TypeScript, and tells an old Node that it is too old', async () => {
    const config = `import { defineConfig } from 'holdfast'\nexport default defineConfig({ store: { sqlite: 'events.db' as string } })`
    await writeFile(join(consumer, 'holdfast.config.ts'), config)
    const command = join('node_modules', 'holdfast', 'dist', 'cli', 'main.js')
    expect(JSON.parse(await run(process.execPath, [command, 'migrate', '--json'], consumer))).toMatchObject({
      ok: true,
    })
    expect(await run(process.execPath, [command, 'status'], consumer)).toContain('No subscriptions.')
    const oldNode = findNodeOlderThan(22)
    const told = oldNode && spawnSync(oldNode, [command, 'status'], { cwd: consumer, encoding: 'utf8' }).stderr
    expect(told ?? 'NODE_TOO_OLD: not on this machine').toMatch(/^NODE_TOO_OLD: /)
  })

  it('type-checks for a program in strict mode, declarations included', async () => {
    const imports = doors.map((door, i) => `import * as door${i} from '${door}'`)
    const uses = doors.map((_, i) => `export const names${i}: string[] = Object.keys(door${i})`)
    await writeFile(join(consumer, 'program.ts'), [...imports, ...uses, ''].join('\n'))
    const compilerOptions = {
      target: 'es2024',
      lib: ['es2024'],
      module: 'nodenext',
      moduleResolution: 'nodenext',
      strict: true,
      noEmit: true,
      skipLibCheck: false,
      typeRoots: [join(root, 'node_modules/@types')],
      types: ['node'],
    }
    await writeFile(join(consumer, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }))
    await expect(npm(root, 'exec', '--offline', '--', 'tsc', '-p', consumer)).resolves.toBe('')
  })

  it('tells a Node that is too old which one it needs', async ({ skip }) => {
    const oldNode = findNodeOlderThan(22)
    if (!oldNode) return skip('no Node older than 22 on this machine')
    const script = `
      const { createSqliteStore } = await import('holdfast/sqlite')
      try {
        await createSqliteStore({ file: 'x.db' })
        console.log('{}')
      } catch ({ code, message }) {
        console.log(JSON.stringify({ code, message }))
      }`
    const { code, message } = await runIn(oldNode, 'old.mjs', script)
    expect(code).toBe('NODE_TOO_OLD')
    expect(message).toContain('24')
  })
})

/** Runs a script in the consumer's folder, on the given Node, and reads the JSON it prints. */
async function runIn(node: string, name: string, script: string) {
  await writeFile(join(consumer, name), script)
  return JSON.parse(await run(node, [name], consumer))
}

function npm(cwd: string, ...args: string[]): Promise<string> {
  return run('npm', args, cwd)
}

async function run(command: string, args: string[], cwd: string): Promise<string> {
  // npm hands its own settings down to the scripts it runs, and vitest its flags; a user's shell has neither.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_OPTIONS$)/.test(name)))
  try {
    return (await promisify(execFile)(command, args, { cwd, env, shell: process.platform === 'win32' })).stdout
  } catch (cause) {
    const { stdout, stderr } = cause as { stdout: string; stderr: string }
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause })
  }
}

/** The machine's own Node, which `npm run` hides behind the one in node_modules. */
function findNodeOlderThan(major: number): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => folder && !folder.includes('node_modules'))
    .map((folder) => join(folder, 'node'))
    .find((node) => {
      const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout ?? ''
      return version !== '' && Number.parseInt(version.slice(1), 10) < major
    })
}

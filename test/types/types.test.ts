import { execFile } from 'node:child_process'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

// What the compiler of a user says: the programs in `right*.ts` compile, and each program in `wrong/` gets the short error that stands above it. With the
// oldest TypeScript that we support and with the newest, on the declarations of a build, which are checked as well (no `skipLibCheck`).

const root = fileURLToPath(new URL('../..', import.meta.url))
const here = fileURLToPath(new URL('.', import.meta.url))
const compilers = {
  '5.4': join(here, 'oldest/node_modules/typescript/bin/tsc'),
  '7.0': join(root, 'node_modules/typescript/bin/tsc'),
}

// A user reads an error in a terminal or beside the code: the first lines of it.
const mostLines = 2
const longestLine = 600

interface Complaint {
  /** Relative to the program's folder. */
  readonly file: string
  readonly line: number
  readonly text: string
}

const right = ['right.ts', 'right-folds.ts', 'right-commands.ts']
// Mistakes that TypeScript hides from us.
const unreported = ['unreported.ts']
const compiled = [...right, ...unreported]
// Settings of users that change what is inferred. `noImplicitAny` is off in the starter of NestJS.
const otherSettings = { exactOptionalPropertyTypes: true, noImplicitAny: false }

let folder: string
let wrong: readonly string[]

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-types-'))
  const own = join(folder, 'node_modules/holdfast')
  await mkdir(join(own, 'dist'), { recursive: true })
  const build = [
    '-p',
    'tsconfig.build.json',
    '--emitDeclarationOnly',
    '--declarationMap',
    'false',
    '--sourceMap',
    'false',
  ]
  const output = await tsc(compilers['7.0'], [...build, '--outDir', join(own, 'dist')], root)
  if (output !== '') throw new Error(`The declarations can not be built: ${output}`)
  await copyFile(join(root, 'package.json'), join(own, 'package.json'))
  for (const name of ['zod', '@types'])
    await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))

  wrong = (await readdir(join(here, 'wrong'))).filter((name) => name.endsWith('.ts'))
  for (const name of compiled) await copyFile(join(here, name), join(folder, name))
  for (const name of wrong) await copyFile(join(here, 'wrong', name), join(folder, name))
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    strict: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    skipLibCheck: false,
    types: ['node'],
  }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [...compiled, ...wrong] }))
  const other = { compilerOptions: { ...compilerOptions, ...otherSettings, skipLibCheck: true }, files: compiled }
  await writeFile(join(folder, 'tsconfig.other.json'), JSON.stringify(other))
}, 120_000)

afterAll(() => rm(folder, { recursive: true, force: true }))

describe.for(Object.entries(compilers))('TypeScript %s', ([version, compiler]) => {
  let complaints: readonly Complaint[]
  const of = (file: string) => complaints.filter((complaint) => complaint.file === file)

  beforeAll(async () => {
    complaints = parse(await tsc(compiler, ['-p', folder, '--pretty', 'false'], folder))
  }, 120_000)

  it('is the compiler that is meant', async () => {
    expect(await tsc(compiler, ['--version'], folder)).toContain(`Version ${version}.`)
  })

  it('has nothing against our declarations', () => {
    expect(complaints.filter(({ file }) => file.startsWith('node_modules/holdfast/'))).toEqual([])
  })

  it('has nothing against programs that are right', () => {
    expect(right.flatMap(of)).toEqual([])
  })

  it('does not report extra fields where it merges types itself', () => {
    expect(unreported.flatMap(of)).toEqual([])
  })

  it('has nothing against them with other settings', async () => {
    expect(
      parse(await tsc(compiler, ['-p', join(folder, 'tsconfig.other.json'), '--pretty', 'false'], folder)),
    ).toEqual([])
  }, 120_000)

  it('says of every program that is wrong what is wrong, at its line, in a few words', async () => {
    for (const file of wrong) {
      const expected = expectations(await readFile(join(here, 'wrong', file), 'utf8'))
      expect(expected.length).toBeGreaterThan(0)
      expect(of(file).map(({ line, text }) => ({ file, line, says: saysOf(text, expected, line) }))).toEqual(
        expected.map(({ line, says }) => ({ file, line, says })),
      )
      for (const { line, text } of of(file)) {
        const lines = text.split('\n')
        const most = expected.find((one) => one.line === line)?.lines ?? mostLines
        expect(lines.length, `${file}:${line}\n${text}`).toBeLessThanOrEqual(most)
        expect(Math.max(...lines.map((each) => each.length)), `${file}:${line}\n${text}`).toBeLessThanOrEqual(
          longestLine,
        )
      }
    }
  })
})

interface Expectation {
  readonly line: number
  readonly lines: number
  readonly says: string
}

/** The expected words where they are in the text; otherwise all of it, to be shown. */
function saysOf(text: string, expected: readonly Expectation[], line: number): string {
  const says = expected.find((one) => one.line === line)?.says
  return says !== undefined && text.includes(says) ? says : text
}

function expectations(program: string): Expectation[] {
  return program.split('\n').flatMap((text, index) => {
    const [, lines = mostLines, says] = /^\s*\/\/ error(?:, (\d) lines)?: (.+)$/.exec(text) ?? []
    // Lines are counted from 1, and it is about the next one.
    return says === undefined ? [] : [{ line: index + 2, lines: Number(lines), says }]
  })
}

/** `file(line,column): error TS2322: text`, and indented lines that belong to it. */
function parse(output: string): Complaint[] {
  const complaints: Complaint[] = []
  for (const line of output.split('\n')) {
    const found = /^(.+?)\((\d+),\d+\): error TS\d+: (.*)$/.exec(line)
    const last = complaints.at(-1)
    if (found) complaints.push({ file: fileOf(found[1] ?? ''), line: Number(found[2]), text: found[3] ?? '' })
    else if (line.startsWith(' ') && last) complaints.push({ ...last, text: `${complaints.pop()?.text}\n${line}` })
    else if (line.trim() !== '') throw new Error(`The compiler says: ${line}`)
  }
  return complaints
}

/** Paths are relative to the folder, or lead out of it. */
function fileOf(path: string): string {
  return path.includes('node_modules/') ? path.slice(path.indexOf('node_modules/')) : basename(path)
}

async function tsc(compiler: string, args: readonly string[], cwd: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [compiler, ...args], { cwd, maxBuffer: 64 * 1_048_576 }, (error, stdout, stderr) => {
      // It exits with 1 or 2 when it has found something, which is then on stdout.
      if (error && stdout === '') reject(new Error(`${compiler}: ${stderr}`, { cause: error }))
      else resolve(stdout)
    })
  })
}

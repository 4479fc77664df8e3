import { describe, expect, it } from 'vitest'
import { checkBoundaries, checkCycles } from '../../scripts/boundaries.mjs'

/** The rules that one file breaks, as `line rule`. */
const findings = (file: string, text: string) =>
  checkBoundaries([[file, text]]).map(({ line, rule }) => `${line} ${rule}`)

describe('the core imports only the core', () => {
  it.for([
    ['a Node module', `import { readFile } from 'node:fs/promises'`],
    ['a Node module without its prefix', `import fs from 'fs'`],
    ['only the types of a Node module', `import type { Stats } from 'node:fs'`],
    ['a type in place', `export type Stats = import('node:fs').Stats`],
    ['a driver', `import { Pool } from 'pg'`],
    ['a package of one scope', `import { z } from '@scope/zod'`],
    ['its own package by name', `import { HoldfastError } from 'holdfast'`],
    ['an adapter', `import { open } from '../sqlite/open.ts'`],
    ['an adapter in a roundabout way', `import { open } from '../log/../sqlite/open.ts'`],
    ['an adapter, passed on', `export { open } from '../sqlite/open.ts'`],
    ['an adapter, passed on whole', `export * from '../redis/index.ts'`],
    ['an adapter for its effect', `import '../kafka/index.ts'`],
    ['an adapter, later', `export const open = () => import('../postgres/open.ts')`],
    ['something that only shows when it runs', `export const open = (name: string) => import(name)`],
    ['telemetry', `import { meter } from '../telemetry/meter.ts'`],
    ['the server', `import { serve } from '../server/index.ts'`],
    ['the command line', `import { main } from '../cli/main.ts'`],
    ['the testing door', `import { simulate } from '../testing/index.ts'`],
    ['a file outside of src', `import { seed } from '../../examples/bank/seed.ts'`],
  ] as const)('and not %s', ([, text]) => {
    expect(findings('src/engine/planted.ts', `\n${text}\n`)).toEqual(['2 core-imports'])
  })

  it.for(['src/planted.ts', 'src/dead-letter/planted.ts', 'src/runtime/system.ts', 'src/a-new-folder/deep/planted.ts'])(
    'in %s',
    (file) => {
      expect(findings(file, `import 'node:os'`)).toEqual(['1 core-imports'])
    },
  )

  it('in the top folder, where an adapter is one step away', () => {
    expect(findings('src/index.ts', `export * from './sqlite/index.ts'`)).toEqual(['1 core-imports'])
  })

  it('and may import its neighbours', () => {
    const text = `import { toMs } from '../runtime/duration.ts'\nimport { HoldfastError } from '../errors.ts'\nimport './loop.ts'`
    expect(findings('src/engine/planted.ts', text)).toEqual([])
  })
})

describe('an adapter imports neither another adapter nor what stands around it', () => {
  it.for([
    ['src/sqlite/planted.ts', '../postgres/sql.ts'],
    ['src/postgres/planted.ts', '../sqlite/sql.ts'],
    ['src/kafka/deep/planted.ts', '../../redis/index.ts'],
    ['src/redis/planted.ts', '../webhook/index.ts'],
    ['src/webhook/planted.ts', '../kafka/index.ts'],
    ['src/sqlite/planted.ts', '../server/index.ts'],
    ['src/sqlite/planted.ts', '../cli/index.ts'],
    ['src/sqlite/planted.ts', '../testing/index.ts'],
    ['src/postgres/planted.ts', 'holdfast/sqlite'],
  ] as const)('%s, %s', ([file, name]) => {
    expect(findings(file, `import '${name}'`)).toEqual(['1 adapter-imports'])
  })

  it('and may import its driver, the core, telemetry and itself, and use the clock', () => {
    const text = [
      `import { DatabaseSync } from 'node:sqlite'`,
      `import { Pool } from 'pg'`,
      `import { HoldfastError } from '../errors.ts'`,
      `import { meter } from '../telemetry/meter.ts'`,
      `import { statements } from './statements.ts'`,
      `export const now = () => Date.now() + Math.random()`,
    ]
    expect(findings('src/sqlite/planted.ts', text.join('\n'))).toEqual([])
  })
})

describe('the core has no clock, timer, chance or outside of its own', () => {
  const planted = [
    ['core-clock', 'Date.now()'],
    ['core-clock', 'Date?.now()'],
    ['core-clock', `Date['now']()`],
    ['core-clock', '[1].map(Date.now)'],
    ['core-clock', 'new Date()'],
    ['core-clock', 'new Date'],
    ['core-clock', 'Date()'],
    ['core-clock', '(Date).now()'],
    ['core-clock', 'globalThis.Date.now()'],
    ['core-clock', 'make(Date)'],
    ['core-clock', 'performance.now()'],
    ['core-clock', '`at ${performance.now()}`'],
    ['core-timers', 'setTimeout(f, 1)'],
    ['core-timers', 'setInterval(f, 1)'],
    ['core-timers', 'setImmediate(f)'],
    ['core-timers', 'queueMicrotask(f)'],
    ['core-timers', 'globalThis.setTimeout(f, 1)'],
    ['core-timers', `globalThis['setTimeout'](f, 1)`],
    ['core-timers', '{ setTimeout }'],
    ['core-timers', 'AbortSignal.timeout(5)'],
    ['core-random', 'Math.random()'],
    ['core-random', `Math['random']()`],
    ['core-random', 'crypto.randomUUID()'],
    ['core-outside', 'process.env.HOME'],
    ['core-outside', 'fetch("http://localhost")'],
    ['core-outside', 'fetch as unknown'],
    ['core-outside', 'Object.keys(globalThis)'],
    ['core-outside', 'globalThis[name]'],
    ['core-outside', '(globalThis as Host).fetch()'],
  ] as const

  it.for(planted)('%s: %s', ([rule, expression]) => {
    expect(findings('src/engine/planted.ts', `\n\nexport const x = ${expression}`)).toEqual([`3 ${rule}`])
  })

  it.for([
    ['core-clock', 'const { now } = Date'],
    ['core-random', 'const { random } = Math'],
    ['core-outside', 'const { setTimeout: later } = globalThis'],
  ] as const)('%s, taken apart: %s', ([rule, text]) => {
    expect(findings('src/engine/planted.ts', text)).toEqual([`1 ${rule}`])
  })

  it('except in the file that makes the real ones', () => {
    const text = planted.map(([, expression], i) => `export const x${i} = ${expression}`).join('\n')
    expect(findings('src/runtime/system.ts', text)).toEqual([])
    expect(findings('src/runtime/planted.ts', text)).toHaveLength(planted.length)
    expect(findings('src/sqlite/runtime/system.ts', text)).toEqual([])
  })
})

describe('look-alikes pass', () => {
  it.for([
    ['a comment', '// Date.now() and setTimeout(), as in node:timers\n/* Math.random() */'],
    ['a string', `export const text = 'Date.now() ' + "import x from 'pg'"`],
    ['a template', 'export const text = `fetch(process.env) ${1} new Date()`'],
    ['a pattern', String.raw`export const pattern = /Date\.now\(\)|'setTimeout(/`],
    [
      'the calendar',
      `export const day = (ms: number) => new Date(ms).getTime() + Date.parse('2026-01-01') + Date.UTC(2026)`,
    ],
    ['a test for a date', 'export const isDate = (x: unknown) => x instanceof Date'],
    ['a date as a type', 'export interface Stamp { at: Date; process: typeof process; fetch(crypto: string): Date }'],
    ['a method of a port', 'export const read = (source: Source) => source.fetch(source.crypto.process)'],
    ['a key', 'export const source = { fetch: 1, process() {}, performance: { now: 2 } }'],
    ['a method of a class', 'export class Lane { process() {} fetch = 1 }'],
    ['other mathematics', 'export const n = Math.floor(1.5)'],
    ['another signal', 'export const signal = AbortSignal.any([])'],
    ['a longer name', 'export const processed = 1, prefetch = 2, mySetTimeout = 3'],
    ['a member of something else', 'export const x = (clock: Clock) => clock.now() + clock.random()'],
  ] as const)('%s', ([, text]) => {
    expect(findings('src/engine/planted.ts', text)).toEqual([])
  })

  it('in a test, which may use anything', () => {
    expect(findings('src/engine/planted.test.ts', `import 'node:fs'\nimport '../sqlite/index.ts'\nDate.now()`)).toEqual(
      [],
    )
  })

  it('in the folders that stand around core and adapters', () => {
    expect(findings('src/testing/planted.ts', `import '../sqlite/index.ts'\nimport 'vitest'\nDate.now()`)).toEqual([])
  })
})

describe('a violation', () => {
  it('says what to do instead', () => {
    const [violation] = checkBoundaries([
      ['src/engine/planted.ts', 'await new Promise((done) => setTimeout(done, 10))'],
    ])
    expect(violation?.instead).toBe('setTimeout: wait with the Timers of src/runtime/ports.ts')
  })

  it('is found on its line, whatever letters come before it', () => {
    const text = `// ${'é😀'.repeat(40)}\n\n\n\nexport const now = Date.now()\n\n\n\n\n\n\n`
    expect(findings('src/engine/planted.ts', text)).toEqual(['5 core-clock'])
  })

  it('is found in every file, all of them', () => {
    const planted = ['src/a.ts', 'src/log/b.ts'].map((file) => [file, `Date.now()\nimport 'pg'`] as const)
    expect(checkBoundaries(planted).map(({ file, line }) => `${file}:${line}`)).toEqual([
      'src/a.ts:1',
      'src/a.ts:2',
      'src/log/b.ts:1',
      'src/log/b.ts:2',
    ])
  })

  it('is a file that cannot be read, too', () => {
    expect(findings('src/engine/planted.ts', 'export const = 1')).toEqual(['1 syntax'])
  })
})

describe('imports in a circle', () => {
  const found = (files: Record<string, string>) =>
    checkCycles(Object.entries(files)).map(({ file, line, rule }) => `${file}:${line} ${rule}`)

  it('are found, in every file of the circle', () => {
    const files = {
      'src/a/one.ts': "import { three } from '../c/three.ts'\nimport { two } from '../b/two.ts'",
      'src/b/two.ts': "export { three } from '../c/three.ts'",
      'src/c/three.ts': "\nimport { one } from '../a/one.ts'",
    }
    expect(found(files)).toEqual([
      'src/a/one.ts:1 cycle',
      'src/a/one.ts:2 cycle',
      'src/b/two.ts:1 cycle',
      'src/c/three.ts:2 cycle',
    ])
    expect(found({ ...files, 'src/c/three.ts': '' })).toEqual([])
  })

  it('may be made of types within a folder, and not across folders', () => {
    const back = "import { type One } from './one.ts'"
    expect(found({ 'src/a/one.ts': "import { two } from './two.ts'", 'src/a/two.ts': back })).toEqual([])
    expect(
      found({ 'src/a/one.ts': "import { two } from './two.ts'", 'src/a/two.ts': "import { one } from './one.ts'" }),
    ).toEqual(['src/a/one.ts:1 cycle', 'src/a/two.ts:1 cycle'])
    const across = {
      'src/a/one.ts': "import { two } from '../b/two.ts'",
      'src/b/two.ts': "import type { One } from '../a/one.ts'",
    }
    expect(found(across)).toEqual(['src/a/one.ts:1 cycle', 'src/b/two.ts:1 cycle'])
  })

  it('of tests do not count', () => {
    const files = { 'src/a/one.ts': "import './one.test.ts'", 'src/a/one.test.ts': "import './one.ts'" }
    expect(found(files)).toEqual([])
  })
})

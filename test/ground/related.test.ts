import { describe, expect, it } from 'vitest'
import { chooseTests } from '../../scripts/related.mjs'

const doors = { holdfast: 'src/index.ts' }
const sources = new Map([
  ['src/index.ts', `export { append } from './log/log.ts'`],
  ['src/log/log.ts', `import { check } from './check.ts'`],
  ['src/log/check.ts', ''],
  ['src/log/check.test.ts', `import { check } from './check.ts'`],
  ['src/log/log.test.ts', `import { append } from './log.ts'`],
  ['src/lane/lane.test.ts', `import { lane } from './lane.ts'`],
  ['src/lane/lane.ts', ''],
  ['test/cli/reference.test.ts', `const page = new URL('../../docs/reference/cli.md', import.meta.url)`],
  ['test/crash/engine.ts', `import { append } from 'holdfast'`],
  ['test/crash/kill.test.ts', `fork(new URL('./engine.ts', import.meta.url))`],
  ['test/docs/docs.test.ts', `entry.name.endsWith('.md')`],
])

const choose = (changed: string[], seconds = 1_000) => chooseTests({ changed, sources, doors, seconds })

describe('npm run check', () => {
  it('runs what imports a changed file, the nearest first, also by the name of the package and through a script', () => {
    expect(choose(['src/log/check.ts'])).toEqual({
      run: ['src/log/check.test.ts', 'src/log/log.test.ts', 'test/crash/kill.test.ts'],
      left: [],
      everywhere: [],
    })
  })

  it('runs nothing when nothing has changed', () => {
    expect(choose([])).toEqual({ run: [], left: [], everywhere: [] })
  })

  it('reports what it leaves out when a change reaches more than fits', () => {
    expect(choose(['src/log/check.ts'], 2)).toEqual({
      run: ['src/log/check.test.ts', 'src/log/log.test.ts'],
      left: ['test/crash/kill.test.ts'],
      everywhere: [],
    })
  })

  it('runs a test that was changed itself even if nothing else fits, and leaves out a long one', () => {
    expect(choose(['src/log/log.test.ts', 'test/crash/kill.test.ts'], 0)).toEqual({
      run: ['src/log/log.test.ts'],
      left: ['test/crash/kill.test.ts'],
      everywhere: [],
    })
  })

  it('runs what imported a file that is gone', () => {
    const without = new Map([...sources].filter(([path]) => path !== 'src/lane/lane.ts'))
    expect(chooseTests({ changed: ['src/lane/lane.ts'], sources: without, doors, seconds: 10 }).run).toEqual([
      'src/lane/lane.test.ts',
    ])
  })

  it('runs the tests that read a page, when a page has changed', () => {
    expect(choose(['docs/reference/cli.md']).run).toEqual(['test/cli/reference.test.ts', 'test/docs/docs.test.ts'])
    expect(choose(['README.md']).run).toEqual(['test/docs/docs.test.ts'])
  })

  it('names the settings that any test may depend on', () => {
    expect(choose(['package.json', 'src/lane/lane.ts'])).toEqual({
      run: ['src/lane/lane.test.ts'],
      left: [],
      everywhere: ['package.json'],
    })
  })
})

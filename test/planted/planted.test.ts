import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Bug, misfit } from './bug.ts'
import { bugs } from './bugs/index.ts'
import { root } from './copy.ts'
import { hunt } from './hunt.ts'

// The short form of `npm run -s planted`: that all of them can be planted, and that the hunt finds what is there and nothing else.

const tell = () => undefined

describe('the planted bugs', () => {
  it('are a hundred at the least, each under its own name', () => {
    expect(bugs.length).toBeGreaterThanOrEqual(100)
    expect(new Set(bugs.map(({ name }) => name)).size).toBe(bugs.length)
  })

  it('fit the code as it is', async () => {
    const misfits = await Promise.all(
      bugs.map(async (bug) => misfit(bug, await readFile(join(root, bug.file), 'utf8').catch(() => ''))),
    )
    expect(misfits.filter((why) => why !== undefined)).toEqual([])
  })

  it('name tests that are there', () => {
    const missing = bugs.flatMap(({ suite }) => suite.filter((file) => !existsSync(join(root, file))))
    expect(missing).toEqual([])
    expect(bugs.filter(({ suite }) => suite.length === 0)).toEqual([])
  })
})

describe('the hunt', () => {
  const probes = bugs.find(({ name }) => name === 'probes-without-a-bound') as Bug
  const harmless: Bug = {
    name: 'harmless',
    tells: 'Nothing.',
    file: probes.file,
    find: `const defaultProbeLeaseMs = 60_000`,
    replace: `const defaultProbeLeaseMs = 60_000 + 0`,
    suite: probes.suite,
  }
  const unloadable: Bug = { ...harmless, name: 'unloadable', replace: 'const defaultProbeLeaseMs = (' }

  it('finds a bug, and passes nothing off as one', { timeout: 120_000 }, async () => {
    const hunted = await hunt({ bugs: [probes, harmless, unloadable], by: 'suite', seeds: 0, servers: [], tell })
    expect(hunted).toMatchObject({ control: { isGreen: true }, planted: 3, found: 1, missed: 2 })
    const [found, green, broken] = hunted.bugs
    expect(found).toMatchObject({ by: 'suite', test: expect.stringContaining(probes.suite[0] as string) })
    expect(green).toMatchObject({ by: null, why: 'nobody noticed' })
    expect(broken).toMatchObject({ by: null, why: expect.stringContaining('machine.test.ts') })
  })
})

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

describe('the kit under node:test', () => {
  it('passes what holds, and fails the rest with the same words and the line of the test', () => {
    const file = fileURLToPath(new URL('node/shop.ts', import.meta.url))
    const args = ['--conditions=@holdfast/source', '--test', '--test-reporter=tap', file]
    // What tells a runner that it is run by another one would keep it from telling us.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
    expect(stdout).toContain('# pass 4')
    expect(stdout).toContain('# fail 1')
    expect(status).toBe(1)
    expect(stdout).toContain('receipts is not idempotent: anna Credited (1 of 2) was handled twice')
    expect(stdout).toMatch(/node\/shop\.ts:\d+:\d+/)
    expect(stdout).toContain("name: 'AssertionError'")
  })
})

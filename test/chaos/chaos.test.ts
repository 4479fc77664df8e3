import { expect, test } from 'vitest'
import { canStartServers } from '../postgres/binaries.ts'
import { runChaos } from './run.ts'

// Two take-overs, and each nemesis at least once. `npm run chaos` is the long form.
const [cycles, seed] = [15, 7]

test.runIf(canStartServers())(
  'nothing is lost, repeated or blamed, whatever happens to engines, server and network',
  {
    timeout: 120_000,
  },
  async () => {
    const result = await runChaos({ engines: 3, cycles, seed })
    console.log(JSON.stringify(result))
    expect(result.problems).toEqual([])
    expect(result.ok).toBe(true)

    // That nothing else was in vain, the result sees to itself.
    expect(result.diskFull > 0 || result.skipped.length > 0).toBe(true)
    expect(result.applied).toBeGreaterThan(1_000)
  },
)

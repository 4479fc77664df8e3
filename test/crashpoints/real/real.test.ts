import { describe, expect, it } from 'vitest'
import { runReal, whyNot } from './run.ts'

const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 32)
const skipped = whyNot()

describe.skipIf(skipped !== undefined)(
  `a real process that is killed at one of its writes (HOLDFAST_SEED=${seed})`,
  () => {
    it('leaves nothing behind that the next one does not put right', async () => {
      const result = await runReal({ store: 'sqlite', seed, most: 4, jobs: 2 })
      expect(result).toMatchObject({ ok: true, failed: [], points: 4 })
      // A kernel that does not let strace kill would show nothing.
      expect(result.kills).toBeGreaterThan(0)
    }, 120_000)
  },
)

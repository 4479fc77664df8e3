import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'
import { createChance, seedOf } from './chance.ts'
import { argsOf, checkTold } from './doors/cli.ts'

// What fuzz.test.ts does in its own process, a few times as a person does it.
const seed = Number(process.env['HOLDFAST_SEED'] ?? 1)

it.for([0, 1, 2])(
  `a command ends with a word of its own, whatever it is given: seed ${seed}, case %i`,
  { timeout: 120_000 },
  async (number) => {
    using place = createPlace()
    // One that would run for ever has its own tests.
    const made = Array.from({ length: 100 }, (_, i) => argsOf(createChance(seedOf(seed, 'process', number * 100 + i))))
    const args = made.find((each) => !['start', 'status', 'events'].includes(each[0] ?? '')) ?? ['--help']
    const { code, stdout, stderr } = await place.run(args.map((arg) => arg.toWellFormed()))
    checkTold({ args, env: {}, code: code ?? -1, stdout, stderr })
    expect(stdout + stderr).not.toBe('')
  },
)

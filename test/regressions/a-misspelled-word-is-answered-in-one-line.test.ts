import { expect, it } from 'vitest'
import { createPlace } from '../cli/place.ts'

it('a word that is misspelled is answered in lines, without a literal line break', async () => {
  using place = createPlace()
  for (const args of [['strat'], ['status', '--wacht'], ['dlq', 'lsit']]) {
    const { code, stderr } = await place.call(args)
    expect({ args, code }).toEqual({ args, code: 2 })
    expect(stderr).toMatch(/Did you mean (start|--watch|list)\?/)
    expect(stderr).not.toContain('\\n')
    expect(await place.json(args)).toMatchObject({ error: { message: expect.not.stringContaining('\n') } })
  }
})

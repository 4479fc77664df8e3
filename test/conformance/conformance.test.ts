import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { describeServers } from '../postgres/databases.ts'
import { useSchemas } from '../postgres/schemas.ts'
import { runSequence } from './run.ts'

// `npm run conformance` is the long form. HOLDFAST_SEED to see the same again.
const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 31)
const sequences = 3
const steps = 120

describeServers('the store in memory', (server) => {
  const schemas = useSchemas(server)

  it(`does what PostgreSQL does, call by call, from seed ${seed} on`, async () => {
    for (let i = 0; i < sequences; i++) {
      const schema = `like_${randomBytes(6).toString('hex')}`
      const { difference } = await runSequence(schemas.url, schema, seed + i, steps)
      expect(difference, `seed ${seed + i}`).toBeUndefined()
    }
  }, 120_000)
})

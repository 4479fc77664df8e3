import { describe, expect, it } from 'vitest'
import { findServices } from '../../scripts/services.mjs'

describe('services', () => {
  it('are taken from the environment first', async () => {
    const env = { PATH: '', REDIS_URL: 'redis://elsewhere:6379' }
    expect((await findServices({ env })).redis).toEqual({ name: 'Redis of REDIS_URL', url: 'redis://elsewhere:6379' })
  })

  it('that can not be started are missing, with the reason', async () => {
    const { pgbouncer } = await findServices({ env: { PATH: '', PGBOUNCER: '/nowhere/pgbouncer' } })
    expect(pgbouncer).toEqual({ name: 'PgBouncer', missing: expect.stringContaining('/nowhere/pgbouncer') })
  })
})

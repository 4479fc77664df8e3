import { describe, expect, it } from 'vitest'
import { cloneDatabase, servers } from '../postgres/databases.ts'
import { runKills } from './kills.ts'

// HOLDFAST_SEED to see the same moments again, as far as the machine repeats itself.
const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 31)
const patience = { timeout: 240_000 }

describe('kill -9 during a redrive: nothing out of order, nothing twice, nothing left', () => {
  it('in SQLite', patience, async () => {
    const result = await runKills({ seed, kills: 6, lanes: 120, perLane: 8 })
    console.log(JSON.stringify(result))
    expect(result.problems).toEqual([])
    // None of this would mean anything if the kills had come at the wrong time.
    expect(result.killsInRedrive).toBeGreaterThan(1)
  })

  it.for(servers.slice(0, 1))('in $name', patience, async (server) => {
    await using database = await cloneDatabase(server)
    const result = await runKills({ seed, kills: 6, lanes: 120, perLane: 8, url: database.url })
    console.log(JSON.stringify(result))
    expect(result.problems).toEqual([])
    expect(result.killsInRedrive).toBeGreaterThan(1)
  })
})

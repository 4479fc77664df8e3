import { describe, expect, it } from 'vitest'
import { cloneDatabase, servers } from '../postgres/databases.ts'
import { type KillResult, runKills } from './kills.ts'

// `npm run handlers` is the long form. HOLDFAST_SEED to see the same moments again, as far as the machine repeats itself.
const kills = 15
const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 31)
const patience = { timeout: 180_000 }

describe(`${kills} kills with -9 under a handler: each effect at least once, in order, and none again when it is done`, () => {
  it('in SQLite', patience, async () => {
    const result = await runKills({ kills, seed })
    console.log(JSON.stringify(result))
    expect(result).toMatchObject(kept)
    expect(vainOf(result)).toEqual([])
  })

  it.for(servers.slice(0, 1))('in $name, with three engines', patience, async (server) => {
    await using database = await cloneDatabase(server)
    const result = await runKills({ kills, seed, url: database.url })
    console.log(JSON.stringify(result))
    expect(result).toMatchObject(kept)
    expect(vainOf(result)).toEqual([])
  })
})

const kept = { problems: [], ok: true, kills, lost: 0, inverted: 0, againAfterFinish: 0 }

/** None of this would mean anything if the kills had come at the wrong time. */
function vainOf(result: KillResult): string[] {
  const { killsUnderWay, killsSideBySide, cutOff, repeatedAfterEnd } = result
  const happened = { killsUnderWay: killsUnderWay > kills / 4, killsSideBySide, cutOff, repeatedAfterEnd }
  return Object.entries(happened).flatMap(([name, happens]) => (happens ? [] : [name]))
}

import { expect, inject, it } from 'vitest'
import { doorsOn } from './doors/index.ts'
import { createGround } from './ground.ts'
import { runFuzz } from './run.ts'

// The short form of `npm run fuzz`: as many cases on every machine, and the same ones, unless HOLDFAST_SEED says otherwise.
const seed = Number(process.env['HOLDFAST_SEED'] ?? 1)

/** So many of each, by what one of them takes. */
const shares: Readonly<Record<string, number>> = {
  thrown: 150,
  names: 2_000,
  config: 1_000,
  'config-file': 25,
  'append.sqlite': 200,
  'append.postgres': 40,
  'source.sqlite': 20,
  'source.postgres': 8,
  'broken-source.sqlite': 15,
  'broken-source.postgres': 6,
  'tables.sqlite': 10,
  'tables.postgres': 5,
  'shown.sqlite': 8,
  'shown.postgres': 2,
  'revise.sqlite': 20,
  'revise.postgres': 8,
  'import.sqlite': 8,
  'import.postgres': 2,
  'cli.sqlite': 40,
  'cli.postgres': 5,
  'copy.postgres': 1,
  'restore.postgres': 3,
}

it(`whatever comes in is taken as it is, held as it is or refused: seed ${seed}`, { timeout: 300_000 }, async () => {
  const server = inject('postgres').find((offer) => 'url' in offer)
  await using ground = createGround(server?.url)
  const doors = doorsOn(ground.stores)
  const { findings, doors: reports } = await runFuzz({
    seed,
    ground,
    doors,
    goesOn: ({ name }, cases) => cases < (shares[name] ?? 0),
  })
  expect(findings).toEqual([])
  const counts = Object.fromEntries(doors.map(({ name }) => [name, reports[name]?.cases]))
  expect(shares).toMatchObject(counts)
})

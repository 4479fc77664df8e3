import { expect, inject, it } from 'vitest'
import { doorsOn } from './doors/index.ts'
import { createGround } from './ground.ts'
import { runFuzz } from './run.ts'

// The short form of `npm run fuzz`: as many cases on every machine, and the same ones, unless HOLDFAST_SEED says otherwise.
const seed = Number(process.env['HOLDFAST_SEED'] ?? 1)

/** So many of each, by what one of them takes. */
const shares: Readonly<Record<string, number>> = {
  thrown: 400,
  names: 4_000,
  'append.sqlite': 400,
  'append.postgres': 60,
  'source.sqlite': 40,
  'source.postgres': 12,
  'broken-source.sqlite': 20,
  'broken-source.postgres': 10,
  'tables.sqlite': 20,
  'tables.postgres': 10,
}

it(`whatever comes in is taken as it is, held as it is or refused: seed ${seed}`, { timeout: 180_000 }, async () => {
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

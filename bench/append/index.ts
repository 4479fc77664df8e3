import { createDatabase } from '../../test/postgres/create-database.ts'
import { type Benchmark, median, rounded } from '../benchmark.ts'
import { inChild } from '../child.ts'
import { useServer } from '../server.ts'
import { machine, meets, type Targets, verdict } from '../target.ts'
import type { AppendRound, AppendTask } from './writers.ts'

const writerCounts = [1, 4, 16]
const targets: Targets = Object.fromEntries(writerCounts.map((writers) => [String(writers), { atLeast: 0.95 }]))

/** Appending single events, ours against one INSERT into the same table, by as many loops at once in one process. */
export const append: Benchmark = {
  summary: 'appends of single events by 1, 4 and 16 writers, compared with a plain INSERT',
  stores: ['postgres'],
  defaults: { events: 5_000, rounds: 9 },
  run: async (settings) => {
    const { store, events, keys, rounds, signal, progress } = settings
    await using server = await useServer(settings)
    const found: [writers: string, figures: ReturnType<typeof figuresOf>][] = []
    for (const writers of writerCounts) {
      await using database = await createDatabase(server)
      const measured = await inChild<AppendTask, AppendRound[]>(
        new URL('writers.ts', import.meta.url),
        { url: database.url, writers, events, keys, rounds },
        { signal },
      )
      const figures = figuresOf(measured)
      progress(`${writers} writers: ${figures.appendsPerSecond} appends/s, ${figures.naivePerSecond} naive`)
      found.push([String(writers), figures])
    }
    const ratios = Object.fromEntries(found.map(([writers, { ratioToNaive }]) => [writers, ratioToNaive]))
    const ok = meets(targets, ratios)
    const fields = {
      benchmark: 'append',
      store,
      events,
      keys,
      rounds,
      writers: Object.fromEntries(found),
      targets: { ratioToNaive: { atLeast: 0.95 } },
      ok,
      postgres: server.version,
      ...machine(),
    }
    const lines = found.map(([writers, figures]) =>
      verdict(`${writers} writers`, figures.ratioToNaive, targets[writers]),
    )
    return { ok, fields, text: ['', 'appends, times naive', ...lines].join('\n') }
  },
}

function figuresOf(rounds: readonly AppendRound[]) {
  return {
    appendsPerSecond: Math.round(median(rounds.map(({ ours }) => ours))),
    naivePerSecond: Math.round(median(rounds.map(({ naive }) => naive))),
    // Within a round, and then the median, as everywhere here.
    ratioToNaive: rounded(median(rounds.map(({ ours, naive }) => ours / naive))),
    perRound: rounds.map(({ ours, naive }) => ({
      appendsPerSecond: Math.round(ours),
      naivePerSecond: Math.round(naive),
    })),
  }
}

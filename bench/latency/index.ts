import { createDatabase } from '../../test/postgres/create-database.ts'
import { type Benchmark, rounded } from '../benchmark.ts'
import { inChild } from '../child.ts'
import { useServer } from '../server.ts'
import { machine, meets, type Targets, verdict } from '../target.ts'
import type { Latency, LatencyTask } from './appender.ts'
import type { BareTask } from './bare.ts'

/**
 * In milliseconds from the time when the event is in the log. From the call of `append`, another commit is included, and two commits in
 * sequence can take longer than 2 ms with any code: on an idle machine each statement wakes a sleeping processor. So the time from the call
 * has a target relative to bare statements. On the machine where 2 ms was chosen, bare statements took a little more than 1 ms.
 */
const targets: Targets = { p50Ms: { atMost: 2 }, p95Ms: { atMost: 5 }, ratioToBare: { atMost: 1.9 } }

/** From `append` until the event's page is committed, one event at a time, on an engine with nothing set. */
export const latency: Benchmark = {
  summary: 'the time from append to applied, with the appender in another process and in the process of the engine',
  stores: ['postgres'],
  defaults: { events: 200, rounds: 3 },
  run: async (settings) => {
    const { store, events, keys, rounds, signal, progress } = settings
    await using server = await useServer(settings)
    const samples = { otherProcess: [] as Latency[], sameProcess: [] as Latency[], bare: [] as Latency[] }
    for (let round = 1; round <= rounds; round++) {
      for (const engine of ['otherProcess', 'sameProcess'] as const) {
        await using database = await createDatabase(server)
        const found = await inChild<LatencyTask, Latency[]>(
          new URL('appender.ts', import.meta.url),
          { url: database.url, engine, events, keys },
          { signal },
        )
        samples[engine].push(...found)
        tell(round, engine, found)
      }
      await using database = await createDatabase(server)
      const task = { url: database.url, events }
      const found = await inChild<BareTask, Latency[]>(new URL('bare.ts', import.meta.url), task, { signal })
      samples.bare.push(...found)
      tell(round, 'bare', found)
    }
    function tell(round: number, way: string, found: readonly Latency[]): void {
      const { p50Ms, p95Ms, fromCall } = summary(found)
      progress(
        `round ${round}  ${way.padEnd(12)} p50 ${p50Ms} ms, p95 ${p95Ms} ms; from the call ${fromCall.p50Ms} and ${fromCall.p95Ms}`,
      )
    }
    const { fromCall, ...applied } = summary(samples.otherProcess)
    const bare = summary(samples.bare)
    const measured = { ...applied, ratioToBare: rounded(fromCall.p50Ms / bare.fromCall.p50Ms) }
    const ok = meets(targets, measured)
    const fields = {
      benchmark: 'latency',
      store,
      samples: samples.otherProcess.length,
      keys,
      rounds,
      ...measured,
      fromCall,
      sameProcess: summary(samples.sameProcess),
      bare,
      targets,
      ok,
      postgres: server.version,
      ...machine(),
    }
    const text = [
      '',
      `appended to applied, ms, ${fields.samples} samples; in the same process ${fields.sameProcess.p50Ms} and ${fields.sameProcess.p95Ms}`,
      `from the call of append ${fromCall.p50Ms} and ${fromCall.p95Ms}; bare statements ${bare.fromCall.p50Ms} and ${bare.fromCall.p95Ms}`,
      verdict('median', measured.p50Ms, targets['p50Ms']),
      verdict('95 of 100', measured.p95Ms, targets['p95Ms']),
      verdict('ratio to bare', measured.ratioToBare, targets['ratioToBare']),
    ]
    return { ok, fields, text: text.join('\n') }
  },
}

function summary(samples: readonly Latency[]) {
  return {
    ...quantiles(samples.map(({ answered }) => answered)),
    fromCall: quantiles(samples.map(({ called }) => called)),
  }
}

function quantiles(samples: readonly number[]) {
  const sorted = samples.toSorted((a, b) => a - b)
  const at = (share: number) => rounded(sorted[Math.ceil(share * sorted.length) - 1] as number)
  return { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99), maxMs: at(1) }
}

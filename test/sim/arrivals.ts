import { HoldfastError, type RecordedEvent, type Source } from 'holdfast'
import type { Outside } from '../../src/testing/simulation/app.ts'
import type { Chance } from '../../src/testing/simulation/chance.ts'
import type { Step } from './steps.ts'

/** What kind of a source it is. */
export interface ArrivalsSettings {
  readonly events: number
  readonly faultsMs: number
  /** How many events it keeps; 0 for all. */
  readonly kept: number
  /** Whether it does not answer now and then, for ever, while things go wrong. */
  readonly isSilent: boolean
}

const silentShare = 0.02

/**
 * A bad source, the same for the same seed: events come a little out of order, and some of them twice. It has them as time goes by, all of
 * them before the faults are over. It keeps all of them, or only the newest.
 */
export class Arrivals {
  readonly records: readonly RecordedEvent[]
  readonly #everyMs: number
  readonly #isSilentNow: (nowMs: number) => boolean
  #kept: number
  /** How often somebody was not answered. */
  silences = 0

  constructor(chance: Chance, { events, faultsMs, kept, isSilent }: ArrivalsSettings) {
    this.#kept = kept === 0 ? Number.POSITIVE_INFINITY : kept
    const versions = new Map<string, number>()
    const made = Array.from({ length: events }, (_, i) => {
      const key = `far-${chance.below(3)}`
      const version = (versions.get(key) ?? 0) + 1
      versions.set(key, version)
      return { key, version, at: i + chance.upTo(8) }
    })
    const again = made.filter(() => chance.is(0.2)).map((one) => ({ ...one, at: one.at + chance.upTo(20) }))
    this.records = [...made, ...again]
      .toSorted((a, b) => a.at - b.at)
      .map(({ key, version }, i) => toRecord(key, version, i + 1))
    this.#isSilentNow = (nowMs) => isSilent && nowMs < faultsMs && chance.is(silentShare)
    this.#everyMs = (faultsMs * 0.8) / Math.max(1, this.records.length)
  }

  /** Somebody puts back what it has dropped. */
  restore(): void {
    this.#kept = Number.POSITIVE_INFINITY
  }

  /** How many versions each key has. */
  get written(): ReadonlyMap<string, number> {
    const written = new Map<string, number>()
    for (const { key, version = 0 } of this.records) written.set(key, Math.max(version, written.get(key) ?? 0))
    return written
  }

  source(outside: Outside): Source {
    const there = () => Math.min(this.records.length, Math.floor(outside.nowMs() / this.#everyMs))
    const ask = <T>(what: string, answer: () => T, signal?: AbortSignal): Promise<T> => {
      if (!this.#isSilentNow(outside.nowMs())) return outside.call(what, answer)
      this.silences++
      return never(signal)
    }
    return {
      name: 'far',
      versions: 'unordered',
      read: (after, { events }, signal) => {
        const answer = () => {
          const gone = there() - this.#kept
          if (after < gone)
            throw new HoldfastError('SOURCE_TRIMMED', `The source far has dropped everything up to position ${gone}.`)
          const page = this.records.slice(after, Math.min(after + events, there()))
          return { events: page, through: page.at(-1)?.position ?? after }
        }
        return ask('far.read', answer, signal)
      },
      head: () => ask('far.head', there),
      lag: async (after) => ({ events: Math.max(0, there() - after), since: undefined }),
      onAppend: () => () => undefined,
    }
  }
}

export function never(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

function toRecord(key: string, version: number, position: number): RecordedEvent {
  const step: Step = { n: version, flaw: 'none' }
  return {
    position,
    id: `${key}-${version}`,
    type: 'Stepped',
    key,
    version,
    schemaVersion: 1,
    time: '2026-01-01T00:00:00.000Z',
    body: JSON.stringify(step),
    metadata: undefined,
  }
}

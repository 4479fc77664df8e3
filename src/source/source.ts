import type { RecordedEvent } from '../event/event.ts'
import type { LogStore, PageLimits } from '../log/log-store.ts'

/**
 * Where a subscription reads. A source gives events in order of position and nothing else: batching, checkpoints, retries and
 * holding are the engine's job.
 */
export interface Source {
  readonly name: string
  /**
   * `contiguous`: the versions of a key come one after the other, each once, so there is nothing to check. `unordered`: they may
   * repeat, come late or be missing; the engine waits for a missing one and skips a repeated one.
   */
  readonly versions: 'contiguous' | 'unordered'
  read(after: number, limits: PageLimits, signal: AbortSignal): Promise<readonly RecordedEvent[]>
  head(): Promise<number>
  lag(after: number): Promise<{ readonly events: number; readonly oldest: string | undefined }>
  onAppend(wake: () => void): () => void
}

export function logSource(log: LogStore): Source {
  return {
    name: 'log',
    versions: 'contiguous',
    read: (after, limits) => log.readAll(after, limits),
    head: () => log.head(),
    lag: (after) => log.lag(after),
    onAppend: (wake) => log.onAppend(wake),
  }
}

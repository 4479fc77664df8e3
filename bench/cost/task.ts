/** What a process of the measurement is asked to do. */
export interface Task {
  readonly url: string
  readonly subscriptions: number
  /** `prepare` makes the tables and ends; `idle` runs an engine until it is stopped. */
  readonly act: 'prepare' | 'idle'
}

export type Question = 'sample' | 'stop'

export type Answer =
  | { readonly kind: 'started' }
  | {
      readonly kind: 'sample'
      /** Microseconds of CPU time since the process began. */
      readonly cpuMicros: number
      readonly rssBytes: number
      /** How many partitions this process has claimed since it began; the sum over all processes stands still when they are shared out. */
      readonly claims: number
    }

import type { Deed } from '../../src/audit/audit.ts'
import type { Failure } from '../../src/failure/failure.ts'
import { describeFailure } from '../../src/failure/failure.ts'
import type { RecordedEvent } from '../../src/event/event.ts'
import type { TableSpec } from '../../src/projection/row-store.ts'
import type { Lease } from '../../src/subscription/subscription-store.ts'
import { createRandom } from '../../src/testing/virtual.ts'
import type { Open, Side } from './sides.ts'

/** One call, the same for both sides. `learn` is told what it came to, when both agree. */
export interface Step {
  readonly name: string
  run(side: Side): Promise<unknown>
  learn?(outcome: never): void
}

export interface OpenPair {
  /** One for each side, by its name. */
  readonly of: Map<string, Open>
  readonly keys: Set<string>
  readonly positions: number[]
  /** Whoever has tried to append holds readers up, whatever came of it. */
  isAppending: boolean
}

export interface LetterKnown {
  readonly subscription: string
  readonly partition: number
  readonly lane: string
  readonly sequence: number
  readonly position: number
  readonly eventId: string
}

export const keys = ['a', 'b', 'c', 'd', 'ü🦑'] as const
export const subscriptions = ['s', 't', 'h'] as const
export const owners = ['one', 'two'] as const
export const leaseMs = 10_000
export const limits = { events: 1_000, bytes: 10_000_000 }

export const table: TableSpec = {
  name: 'balances',
  columns: [
    { name: 'balance', type: 'integer' },
    { name: 'owner', type: 'text' },
    { name: 'open', type: 'boolean' },
  ],
}

const causes = [new TypeError('no amount'), new RangeError('100 is too Much'), new Error('503 from \ud800 elsewhere\0')]

/** What a sequence knows of both sides: what it has heard from them, as long as they said the same. */
export class Knowledge {
  readonly random: ReturnType<typeof createRandom>
  /** The newest first, each with the process that has it. */
  readonly leases: { readonly lease: Lease; readonly client: 0 | 1 }[] = []
  readonly events: RecordedEvent[] = []
  readonly letters: LetterKnown[] = []
  readonly redrives: string[] = []
  readonly open: OpenPair[] = []
  readonly rowVersions = new Map<string, number>()
  /** One that appended has ended while others were open: how far readers are now is a matter of when they looked. */
  isLoose = false
  time = 1
  ids = 0
  /** Letters that are not of the log stand behind all that could ever be in it. */
  foreign = 1_000_000

  constructor(seed: number) {
    this.random = createRandom(seed)
  }

  get isAppending(): boolean {
    return this.open.some((pair) => pair.isAppending)
  }

  below(limit: number): number {
    return this.random.below(limit)
  }

  /** One time of so many. */
  oneIn(times: number): boolean {
    return this.below(times) === 0
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }

  maybe<T>(items: readonly T[]): T | undefined {
    return items.length === 0 ? undefined : this.pick(items)
  }

  client(): 0 | 1 {
    return this.below(2) as 0 | 1
  }

  /** Most letters have failed of one of a few things. */
  failure(): Failure {
    const cause = this.pick(causes)
    // Without a stack, which has the path of this file in it.
    return describeFailure({ name: cause.name, message: cause.message }, this.pick(['permanent', 'transient']), 'fold')
  }

  deed(act: string): Deed {
    return {
      by: this.pick(['ann', 'bob']),
      act,
      target: 's',
      reason: `because of ${act}`,
      at: this.time++,
      details: {},
    }
  }

  /** Undefined half of the time: then nothing is said about who did it. */
  maybeDeed(act: string): Deed | undefined {
    return this.oneIn(2) ? this.deed(act) : undefined
  }
}

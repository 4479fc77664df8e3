import type { Link } from '../link.ts'
import type { Chance } from './chance.ts'
import type { Conditions } from './conditions.ts'
import type { History } from './history.ts'
import type { Process } from './process.ts'
import type { Schedule } from './schedule.ts'

/** A process dies at its n-th call, before or after its effect. */
export interface CrashPoint {
  readonly call: number
  readonly when: 'before' | 'after'
}

export interface NetworkOptions {
  readonly schedule: Schedule
  readonly chance: Chance
  readonly history: History
  readonly conditions: () => Conditions
  readonly crashPoints: readonly CrashPoint[]
  readonly kill: (process: Process) => void
}

/** The target of a link. */
export interface Place {
  readonly name: string
  readonly isUp: () => boolean
  /** In the process itself: nothing is lost on the way, and a dead process does nothing. */
  readonly isLocal: boolean
  /** Its effects are real statements of a database: time stands still until they are done. */
  readonly isReal: boolean
  readonly unavailable: () => Error
  /** It is available, but refuses. */
  readonly busy: () => Error
}

const patienceMs = 5_000

/** The network between the processes and everything outside. Each call has two directions, and each of them can fail. */
export class Network {
  readonly #options: NetworkOptions
  readonly #crashPoints: ReadonlyMap<number, 'before' | 'after'>
  #calls = 0
  /** Effects whose answer was lost, by name of the call. */
  readonly unheard = new Map<string, number>()

  constructor(options: NetworkOptions) {
    this.#options = options
    this.#crashPoints = new Map(options.crashPoints.map(({ call, when }) => [call, when]))
  }

  /** The number of calls. */
  get calls(): number {
    return this.#calls
  }

  link(process: Process, place: Place): Link {
    return {
      call: (what, effect, about) => this.#call(process, place, what, effect, about),
      hint: (what, deliver) => {
        const { chance, conditions } = this.#options
        if (!process.isAlive || chance.is(conditions().lostHint)) return
        void process.later(this.#legMs(), deliver)
        this.#tell(process, 'hint', what)
      },
    }
  }

  #call<T>(
    process: Process,
    place: Place,
    what: string,
    effect: () => T | Promise<T>,
    about: readonly unknown[] | undefined,
  ): Promise<T> {
    const { schedule, chance, conditions } = this.#options
    const number = ++this.#calls
    const askedMs = schedule.now
    return new Promise((resolve, reject) => {
      if (!process.isAlive || this.#dies(process, number, 'before')) return
      const refuse = (why: string, error: Error, afterMs: number) => {
        this.#tell(process, 'lost', `${what} #${number} ${why}`)
        void process.later(afterMs, () => reject(error))
      }
      if (!place.isLocal && chance.is(conditions().lostRequest))
        return refuse('request', place.unavailable(), chance.upTo(patienceMs))
      schedule.in(this.#legMs(), () => {
        if (place.isLocal && !process.isAlive) return
        if (!place.isUp()) return refuse('down', place.unavailable(), this.#legMs())
        if (chance.is(conditions().busy)) return refuse('busy', place.busy(), this.#legMs())
        arrive()
      })

      // An instant effect is recorded when it happens: waiting work may follow at once.
      const arrive = () => {
        try {
          const value = place.isReal ? schedule.hold(effect) : effect()
          if (value instanceof Promise)
            value.then(
              (late: T) => had({ value: late }),
              (error: unknown) => had({ error }),
            )
          else had({ value })
        } catch (error) {
          had({ error })
        }
      }

      const had = (outcome: { readonly value: T } | { readonly error: unknown }) => {
        this.#tell(process, 'effect', `${what} #${number} ${inShort(outcome)}`, { what, about, askedMs, ...outcome })
        if (this.#dies(process, number, 'after') || !process.isAlive) return this.#unheardOf(what)
        if (!place.isLocal && chance.is(conditions().lostAnswer)) {
          this.#unheardOf(what)
          return refuse('answer', place.unavailable(), chance.upTo(patienceMs))
        }
        void process.later(this.#legMs(), () => ('value' in outcome ? resolve(outcome.value) : reject(outcome.error)))
      }
    })
  }

  #dies(process: Process, number: number, when: 'before' | 'after'): boolean {
    if (this.#crashPoints.get(number) !== when) return false
    this.#tell(process, 'crash', `${when} #${number}`)
    this.#options.kill(process)
    return true
  }

  #unheardOf(what: string): void {
    this.unheard.set(what, (this.unheard.get(what) ?? 0) + 1)
  }

  #legMs(): number {
    const { chance, conditions } = this.#options
    const { latencyMs, slow, slowMs } = conditions()
    return chance.upTo(chance.is(slow) ? slowMs : latencyMs)
  }

  #tell(process: Process, kind: string, text: string, about?: unknown): void {
    this.#options.history.add(this.#options.schedule.now, process.name, kind, text, about)
  }
}

/** The outcome for the trace. */
function inShort(outcome: { readonly value: unknown } | { readonly error: unknown }): string {
  if ('error' in outcome)
    return `threw ${(outcome.error as { code?: string } | undefined)?.code ?? String(outcome.error)}`
  const { value } = outcome
  if (Array.isArray(value)) return `[${value.length}]`
  if (typeof value !== 'object' || value === null) return String(value)
  if ('outcome' in value) return String(value.outcome)
  if ('events' in value && Array.isArray(value.events)) return `${value.events.length} events`
  return 'done'
}

import { StoreError } from '../../errors.ts'
import { createLog } from '../../log/log.ts'
import type { Store } from '../../store.ts'
import type { App, PlannedAppend } from './app.ts'
import { createChance } from './chance.ts'
import type { Plan } from './plan.ts'
import type { Process } from './process.ts'
import type { Schedule } from './schedule.ts'

/** Appends the planned events, each key in order, and retries until each is known to be in the log. */
export class Writer {
  readonly #plan: readonly PlannedAppend[]
  readonly #append: (planned: PlannedAppend) => Promise<unknown>
  #done = 0

  constructor(
    app: App,
    { seed, faultsMs, appends }: Plan,
    { process, store }: { readonly process: Process; readonly store: Store },
  ) {
    this.#plan = app.appends(createChance(seed, 'workload'), faultsMs).slice(0, appends)
    const log = createLog({ store, events: app.events, ...process.runtime })
    this.#append = ({ key, drafts }) => log.append(key, drafts)
  }

  get isDone(): boolean {
    return this.#done === this.#plan.length
  }

  get left(): number {
    return this.#plan.length - this.#done
  }

  begin(schedule: Schedule): void {
    const wait = (ms: number) => new Promise<void>((resolve) => void schedule.in(ms, resolve))
    const byKey = Map.groupBy(this.#plan, ({ key }) => key)
    for (const plans of byKey.values()) void this.#write(plans, schedule, wait)
  }

  async #write(
    plans: readonly PlannedAppend[],
    schedule: Schedule,
    wait: (ms: number) => Promise<void>,
  ): Promise<void> {
    for (const planned of plans) {
      await wait(planned.atMs - schedule.now)
      for (;;) {
        try {
          await this.#append(planned)
          break
        } catch (error) {
          if (!(error instanceof StoreError)) throw error
          await wait(200)
        }
      }
      this.#done++
    }
  }
}

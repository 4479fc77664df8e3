import {
  createEngine,
  createLog,
  createOperator,
  type EngineOptions,
  type Log,
  type Operator,
  type Runtime,
  type Store,
  type Subscription,
} from 'holdfast'
import type { Consumer } from '../../src/subscription/subscription.ts'
import type { Outside } from '../../src/testing/simulation/app.ts'
import type { History } from '../../src/testing/simulation/history.ts'
import { steps } from './steps.ts'

/** One path of the engine, as a short run in which nothing goes wrong but what the path is about. */
export interface Scenario {
  readonly name: string
  /** Where only one of them can do it. */
  readonly stores?: readonly StoreName[]
  /** Processes with an engine; 1 unless said. Those of which the script says nothing begin by themselves. */
  readonly processes?: number
  readonly begins?: readonly number[]
  readonly engine?: Pick<EngineOptions, 'page' | 'lease' | 'beat' | 'poll' | 'retention'>
  /** What a process runs. Asked for every process anew, so that none shares memory with another. */
  subscriptions(scene: Scene, outside: Outside, slot: number): readonly (Consumer | Subscription)[]
  /** What people, programs and the world do, one after the other. */
  script(scene: Scene): Promise<void>
  /** What is to be seen after it, or the run has shown nothing. */
  shows(ending: Ending): Promise<boolean> | boolean
  /** Its checkpoints go back, or another one takes their place; then their order in the history says nothing. */
  readonly isBegunAnew?: true
  /** Which events are held for a while depends on who comes first; in the end all of them are done. */
  readonly isTimed?: true
}

export interface Ending {
  readonly witness: Store
  readonly history: History
  readonly scene: Scene
  readonly state: readonly string[]
}

/** Somebody who is no engine: an application, or a person at a command line. Dies as well, and is then asked again. */
export interface Actor {
  readonly store: Store
  readonly runtime: Runtime
  readonly log: Log<typeof steps>
  readonly operator: Operator
  /** Whether somebody was asked before, and died over it. */
  readonly isAgain: boolean
}

/** What a service was asked to do, in the order in which it did it. */
export interface Effect {
  readonly handler: string
  readonly key: string
  readonly n: number
  readonly idempotencyKey: string
}

/** What the world of a run lets the script do. */
export interface Stage {
  readonly witness: Store
  /** Time stands still while somebody looks. */
  look<T>(look: (witness: Store) => Promise<T>): Promise<T>
  /** Resolves with false when the one who did it died. */
  perform(work: (store: Store, runtime: Runtime) => Promise<void>): Promise<boolean>
  sleep(ms: number): Promise<void>
  launch(slot: number): void
  stop(slot: number): Promise<void>
  kill(slot: number): void
  setStore(isUp: boolean): void
  setService(isWell: boolean): void
  /** How often something of a kind is in the history. */
  count(kind: string): number
  consumers(slot: number): readonly Subscription[]
}

export const storeNames = ['server', 'file'] as const
/** A server in memory with many connections, or the real SQLite in a file. */
export type StoreName = (typeof storeNames)[number]

const lookMs = 25
const mostLooks = 100_000

/** What the script of a scenario works with. */
export class Scene {
  readonly effects: Effect[] = []
  /** What is wrong with the code is so until it is mended. */
  isMended = false
  readonly #stage: Stage

  constructor(stage: Stage) {
    this.#stage = stage
  }

  get witness(): Store {
    return this.#stage.witness
  }

  /** Done until it is done: whoever dies over it is followed by another, who does not know how far it came. */
  async act(work: (actor: Actor) => Promise<unknown>, slot = 0): Promise<void> {
    for (let tries = 0; ; tries++) {
      const isDone = await this.#stage.perform(async (store, runtime) => {
        const subscriptions = this.#stage.consumers(slot)
        await work({
          store,
          runtime,
          log: createLog({ store, events: steps, ...runtime }),
          operator: createOperator({ store, subscriptions, by: 'ada', ...runtime }),
          isAgain: tries > 0,
        })
      })
      if (isDone) return
    }
  }

  async until(what: string, holds: (witness: Store) => Promise<boolean>, everyMs = lookMs): Promise<void> {
    for (let looks = 1; !(await this.#stage.look(holds)); looks++) {
      if (looks === mostLooks) throw new Error(`It never came about that ${what}.`)
      await this.#stage.sleep(everyMs)
    }
  }

  /** Until something of a kind was told by an engine. */
  told(kind: 'blocked'): Promise<void> {
    return this.until(`it is ${kind}`, async () => this.#stage.count(kind) > 0)
  }

  wait(ms: number): Promise<void> {
    return this.#stage.sleep(ms)
  }

  mend(): void {
    this.isMended = true
  }

  /** Lets a process begin that has not yet, or that was stopped. */
  launch(slot: number): void {
    this.#stage.launch(slot)
  }

  /** Lets it end as it should; if it dies over that, it is gone as well. */
  stop(slot: number): Promise<void> {
    return this.#stage.stop(slot)
  }

  /** With -9, and nobody takes its place until it is launched again. */
  kill(slot: number): void {
    this.#stage.kill(slot)
  }

  setStore(isUp: boolean): void {
    this.#stage.setStore(isUp)
  }

  setService(isWell: boolean): void {
    this.#stage.setService(isWell)
  }

  // ---- What scripts do often

  /** Each of these is `key` or `key!flaw`; the number of each is its place in its key. */
  async append(...names: readonly string[]): Promise<void> {
    for (const [key, drafts] of this.#drafts(names)) await this.act(({ log }) => log.append(key, drafts))
  }

  readonly #written = new Map<string, number>()

  get written(): ReadonlyMap<string, number> {
    return this.#written
  }

  #drafts(names: readonly string[]) {
    const byKey = Map.groupBy(names, (name) => name.split('!')[0] as string)
    return [...byKey].map(([key, own]) => {
      const before = this.#written.get(key) ?? 0
      this.#written.set(key, before + own.length)
      const drafts = own.map((name, i) => {
        const n = before + i + 1
        return { id: `${key}-${n}`, type: 'Stepped' as const, data: { n, flaw: name.split('!')[1] ?? 'none' } }
      })
      return [key, drafts] as const
    })
  }

  /** Asks for a redrive or the like once, however often whoever asks dies. */
  async ask(
    act: 'redrive' | 'discard' | 'resolve' | 'skip',
    subscription: string,
    selection: Parameters<Operator['redrive']>[1],
    options: Partial<Parameters<Operator['redrive']>[2]> = {},
  ): Promise<void> {
    const reason = options.reason ?? act
    await this.act(async ({ operator }) => {
      const known = await operator.redrives({ subscription })
      if (known.some((one) => one.reason === reason)) return
      await operator[act](subscription, selection, { ...options, reason })
    })
    await this.until(`${reason} of ${subscription} is over`, async ({ redrives }) =>
      (await redrives.list({ subscription, limit: 100 })).some(
        (one) => one.reason === reason && one.status !== 'running',
      ),
    )
  }

  /** Looks whether everything is right, as somebody with a command line does while others work. */
  async verify(store: Store, runtime: Runtime, name: string): Promise<void> {
    const engine = createEngine({ store, subscriptions: this.#stage.consumers(0), ...runtime })
    const { ok, differences } = await engine.verify(name)
    if (!ok) throw new Error(JSON.stringify(differences))
  }

  /** Until there are so many letters of such a status. */
  held(subscription: string, status: 'parked' | 'queued' | 'retrying' | 'waiting', count: number): Promise<void> {
    return this.until(`${count} letters of ${subscription} are ${status}`, async ({ letters }) => {
      const found = await letters.list({ subscription, limit: 1_000 })
      return found.filter((letter) => letter.status === status).length === count
    })
  }

  /** Until everything that is in the log has its outcome, and nothing is about to be tried. */
  reached(subscription: string): Promise<void> {
    return this.until(`${subscription} is at the end of the log`, async ({ log, subscriptions, letters }) => {
      const states = await subscriptions.partitions(subscription)
      const end = await log.end()
      const { byStatus } = await letters.summary(subscription, 0)
      const moving = (byStatus.retrying ?? 0) + (byStatus.waiting ?? 0)
      return states.length > 0 && moving === 0 && states.every(({ checkpoint }) => checkpoint.position >= end)
    })
  }
}

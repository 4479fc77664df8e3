import type { Runtime } from '../runtime/ports.ts'
import type {
  Breaker,
  BreakerEntry,
  BreakerHooks,
  BreakerPass,
  BreakerSettings,
  BreakerState,
  CallOptions,
} from './breaker.ts'
import type { BreakerStore } from './breaker-store.ts'
import { callThrough } from './call.ts'
import { admitsProbe, type Circuit, closedCircuit, holdsProbe, stateOf, tallyOf } from './circuit.ts'
import { createToken, isOnce, shut } from './entry.ts'
import { type Input, step } from './machine.ts'
import { Mirror, type Reading } from './mirror.ts'
import { tallyIn } from './tally.ts'

export interface GateOptions {
  readonly store: BreakerStore
  readonly name: string
  readonly settings: BreakerSettings
  readonly runtime: Runtime
  readonly processId: string
  readonly counts: (error: unknown) => boolean
  readonly hooks: BreakerHooks
}

/** Whether a call may be made now: any call, one probe, or none for some time. */
export type Outlook = { readonly entry: 'closed' | 'probe' } | { readonly entry: 'open'; readonly afterMs: number }

/**
 * Two circuits, one state machine. The *shared* one is in the store and decides when it is not closed. The *own* one is in memory
 * and contains what this process saw itself; it decides
 *
 *   - while the shared one is closed: below the quorum, the process is still protected;
 *   - while the store is unavailable: it starts from the last known state of the shared one.
 *
 * The own circuit is reset whenever the shared one opens, closes, or is changed by an operator, because the shared one has more
 * information.
 *
 * Cost: a success costs nothing unless the store has failures. A failure costs a save, and a load if the state is older than 1
 * second; concurrent failures share them. `enter` costs one load per second.
 */
export class Gate implements Breaker {
  readonly name: string
  readonly #options: GateOptions
  readonly #ownSettings: BreakerSettings
  readonly #mirror: Mirror
  #own: Circuit = closedCircuit()
  #telling: Promise<unknown> | undefined
  #seen: BreakerState | undefined

  constructor(options: GateOptions) {
    const { name, store, runtime, settings, hooks } = options
    this.name = name
    this.#options = options
    this.#ownSettings = { ...settings, quorum: 1 }
    this.#mirror = new Mirror({
      store,
      name,
      runtime,
      onCircuit: (from, to) => this.#onShared(from, to),
      onDown: () => this.#takeOver(),
      onBack: () => void this.#tell(),
      onError: (error) => quietly(() => hooks.onStoreError?.(name, error)),
    })
  }

  async enter(): Promise<BreakerEntry> {
    await this.#mirror.refresh()
    const entry = this.#answer() ?? (await this.#askForProbe())
    this.#announce()
    return entry
  }

  async report(entry: BreakerEntry, succeeded: boolean): Promise<void> {
    if (!isOnce(entry)) return
    const verdict = succeeded ? 'success' : 'failure'
    const { era, probe } = entry
    if (probe?.of === 'all') await this.#endProbe(probe.id, (own) => this.#verdict(verdict, own ?? era, probe.id))
    else await this.#endCall(entry, verdict)
    this.#announce()
  }

  async forget(entry: BreakerEntry): Promise<void> {
    if (!isOnce(entry) || !entry.probe) return
    const input = { input: 'forget', probe: entry.probe.id } as const
    if (entry.probe.of === 'all') await this.#endProbe(entry.probe.id, () => input)
    else this.#stepOwn(input)
  }

  call<T>(work: (signal: AbortSignal | undefined) => T | Promise<T>, { signal }: CallOptions = {}): Promise<T> {
    return callThrough(this, work, signal, this.#options.counts)
  }

  async state(): Promise<BreakerState> {
    await this.#mirror.refresh()
    return this.#current()
  }

  close(): Promise<void> {
    return this.#mirror.close()
  }

  isYounger(ms: number): boolean {
    return this.#mirror.isYounger(ms)
  }

  learn(reading: Reading): Promise<void> {
    return this.#mirror.learn(reading)
  }

  /** What `enter` would return, from memory. Requests no probe and changes nothing. */
  outlook(): Outlook {
    const { circuit, isDown } = this.#mirror
    const now = this.#mirror.now()
    const isOwn = circuit.state !== 'isolated' && (isDown || circuit.state === 'closed')
    const ruling = isOwn ? this.#own : circuit
    if (ruling.state === 'closed') return { entry: 'closed' }
    if (admitsProbe(ruling, isOwn ? this.#ownSettings : this.#options.settings, now)) return { entry: 'probe' }
    return { entry: 'open', afterMs: shut(ruling, now).afterMs }
  }

  /** From memory; undefined if a probe of the shared circuit is available. */
  #answer(): BreakerEntry | undefined {
    const { circuit, isDown } = this.#mirror
    const now = this.#mirror.now()
    if (circuit.state === 'isolated') return shut(circuit, now)
    if (isDown || circuit.state === 'closed') return this.#enterOwn(now)
    return admitsProbe(circuit, this.#options.settings, now) ? undefined : shut(circuit, now)
  }

  async #askForProbe(): Promise<BreakerEntry> {
    const { settings, processId } = this.#options
    const probe = createToken(this.#options.runtime.random)
    const input = { input: 'enter', processId, probe } as const
    await this.#mirror.act((circuit, now) => step(circuit, input, settings, now))
    const { circuit } = this.#mirror
    if (holdsProbe(circuit, probe)) return this.#pass({ id: probe, of: 'all' })
    // Another process has the probe, the circuit is closed by now, or the store failed.
    return this.#answer() ?? shut(circuit, this.#mirror.now())
  }

  #enterOwn(now: number): BreakerEntry {
    if (this.#own.state === 'closed') return this.#pass()
    const id = createToken(this.#options.runtime.random)
    this.#stepOwn({ input: 'enter', processId: this.#options.processId, probe: id })
    return holdsProbe(this.#own, id) ? this.#pass({ id, of: 'process' }) : shut(this.#own, now)
  }

  #pass(probe?: BreakerPass['probe']): BreakerPass {
    const eras = { era: this.#mirror.circuit.era, ownEra: this.#own.era }
    return probe ? { entry: 'probe', ...eras, probe } : { entry: 'closed', ...eras }
  }

  async #endProbe(id: string, inputOf: (ownEra?: number) => Input): Promise<void> {
    await this.#mirror.act((circuit, now) => step(circuit, inputOf(), this.#options.settings, now))
    // The store failed, and the own circuit has taken over with this probe.
    if (this.#mirror.isDown && holdsProbe(this.#own, id)) this.#stepOwn(inputOf(this.#own.era))
  }

  async #endCall({ era, ownEra, probe }: BreakerPass, verdict: 'success' | 'failure'): Promise<void> {
    const shared = this.#mirror.circuit
    if (era !== shared.era || ownEra !== this.#own.era) return
    this.#stepOwn(this.#verdict(verdict, ownEra, probe?.id))
    if (this.#mirror.isDown || shared.state !== 'closed') return
    if (verdict === 'failure') return this.#tell()
    if (this.#own.state !== 'closed') return
    const well = { input: 'well', processId: this.#options.processId, era } as const
    const isNews = (circuit: Circuit, now: number) => step(circuit, well, this.#options.settings, now)
    if (isNews(shared, this.#mirror.now()) !== shared) await this.#mirror.act(isNews)
  }

  #verdict(input: 'success' | 'failure', era: number, probe: string | undefined): Input {
    return { input, processId: this.#options.processId, era, ...(probe !== undefined && { probe }) }
  }

  /** Saves all failures that this process has seen. Failures that arrive while this waits are included. */
  async #tell(): Promise<void> {
    const { processId, settings } = this.#options
    const telling = (this.#telling ??= this.#mirror.act((circuit, now) => {
      this.#telling = undefined
      const tally = tallyOf(this.#own, processId, settings, now)
      return tally ? step(circuit, { input: 'tally', processId, era: circuit.era, tally }, settings, now) : circuit
    }))
    await telling
    // It may never have run, because the store failed.
    if (this.#telling === telling) this.#telling = undefined
  }

  #stepOwn(input: Input): void {
    this.#own = step(this.#own, input, this.#ownSettings, this.#mirror.now())
  }

  #renewOwn(): void {
    this.#own = closedCircuit(this.#own.era + 1)
  }

  #onShared(from: Circuit, to: Circuit): void {
    const isFirst = this.#seen === undefined
    if (from.era !== to.era || from.state !== 'closed' || to.state !== 'closed') this.#renewOwn()
    // A process that restarts under the same name keeps its tally: otherwise a process that dies repeatedly would start from zero
    // each time.
    const mine = isFirst && to.state === 'closed' ? tallyIn(to.tallies, this.#options.processId) : undefined
    if (mine && this.#own.state === 'closed') this.#own = { ...this.#own, tallies: { [this.#options.processId]: mine } }
    this.#announce()
  }

  #takeOver(): void {
    const { circuit } = this.#mirror
    if (circuit.state === 'open' || circuit.state === 'half-open') this.#own = { ...circuit, era: this.#own.era + 1 }
    this.#announce()
  }

  #current(): BreakerState {
    const { circuit, isDown } = this.#mirror
    if (circuit.state === 'isolated') return stateOf(circuit)
    if (!isDown && circuit.state !== 'closed') return stateOf(circuit)
    const own = stateOf(this.#own)
    if (own.state === 'open' || own.state === 'half-open') return { ...own, local: true }
    return circuit.state === 'closed' ? stateOf(circuit) : own
  }

  /** The first known state is not a change. */
  #announce(): void {
    const from = this.#seen
    const to = this.#current()
    this.#seen = to
    if (from && from.state !== to.state) quietly(() => this.#options.hooks.onChange?.(this.name, from, to))
  }
}

function quietly(hook: () => void): void {
  try {
    hook()
  } catch {
    // Errors of listeners are ignored.
  }
}

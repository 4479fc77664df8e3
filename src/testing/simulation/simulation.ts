import { createEngine, type Engine } from '../../engine/process/engine.ts'
import { StoreError } from '../../errors.ts'
import { createOperator } from '../../operator/operator.ts'
import type { Runtime } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import type { App, Outside, Rebuilt } from './app.ts'
import type { Backend } from './backend.ts'
import { createChance } from './chance.ts'
import { type Conditions, calm } from './conditions.ts'
import { History } from './history.ts'
import { type CrashPoint, Network } from './network.ts'
import { nowhere, outsideOf, servicePlace } from './outside.ts'
import { SimulatedOperator } from './simulated-operator.ts'
import type { Plan, StoreName } from './plan.ts'
import { Process } from './process.ts'
import { Rebuilder } from './rebuilder.ts'
import { Schedule } from './schedule.ts'
import { Writer } from './writer.ts'

export interface SimulationOptions {
  readonly plan: Plan
  readonly app: App
  readonly open: Readonly<Record<StoreName, (runtime: Runtime) => Promise<Backend>>>
  readonly crashPoints?: readonly CrashPoint[]
  /** Events may stay parked at the end, because the code is not fixed. */
  readonly mayStayParked?: boolean
}

interface Running {
  readonly process: Process
  readonly engine: Engine
}

export interface Run {
  readonly history: History
  readonly witness: Store
  readonly network: Network
  /** The events that an operator discarded: `subscription/position`. */
  readonly discarded: ReadonlySet<string>
  /** Undefined if everything ended in time. */
  readonly stuck: string | undefined
  readonly virtualMs: number
  readonly steps: number
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const lookEveryMs = 500
const redriveEveryMs = 3_000
/** The maximum time until running processes are idle. Events may kill several of them first. */
const settleMs = 1_200_000
/** The maximum time for the recovery when the faults have stopped. */
const healMs = 600_000

/**
 * A world in virtual time: processes that run the real engine, a store, services, and the faults between them. First faults are
 * injected, then the code is fixed, and everything must recover.
 */
export async function runSimulation(
  options: SimulationOptions,
  judge: (run: Run) => Promise<void> | void,
): Promise<void> {
  const { app, plan } = options
  const { seed } = plan
  const schedule = new Schedule(createChance(seed, 'schedule'))
  const history = new History()
  const fate = createChance(seed, 'fate')
  const truly: Outside = { ...nowhere, nowMs: () => schedule.now, call: async (_what, effect) => effect() }
  const consumers = app.subscriptions(truly, () => undefined)
  const { runtime: truth } = new Process('witness', schedule, createChance(seed, 'witness'))
  const backend = await options.open[plan.store](truth)
  let conditions = plan.conditions
  let isStoreUp = true
  let isWell = true
  let launched = 0
  const running = new Map<number, Running>()
  /** Why subscriptions have stopped for good, in the running processes. */
  const halted = new Map<string, unknown>()
  const network = new Network({
    schedule,
    chance: createChance(seed, 'network'),
    history,
    conditions: () => conditions,
    crashPoints: options.crashPoints ?? [],
    kill: (process) => kill(process),
  })
  const storePlace = { ...backend.place, isUp: () => isStoreUp }
  const service = servicePlace(() => isWell)
  try {
    const writer = new Writer(app, plan, open('writer'))
    for (let slot = 0; slot < plan.processes; slot++) launch(slot)
    writer.begin(schedule)
    const operator = new SimulatedOperator(
      open('person'),
      app,
      consumers.map(({ name }) => name),
      createChance(seed, 'person'),
      tell,
    )
    const builder = rebuilder()
    breakThings(operator, builder)
    if (app.rebuilt) lookAround(app.rebuilt)
    const stuck = await live(writer, operator, builder).catch((error: unknown) => String(error))
    await judge({
      history,
      witness: backend.witness,
      network,
      discarded: operator.discarded,
      stuck,
      virtualMs: schedule.now,
      steps: schedule.steps,
    })
  } finally {
    for (const { process } of running.values()) process.kill()
    await backend.close()
  }

  function open(name: string): { process: Process; store: Store } {
    const process = new Process(name, schedule, createChance(seed, name))
    return { process, store: backend.connect(process, network.link(process, storePlace)) }
  }

  function launch(slot: number): void {
    const { process, store } = open(`engine-${slot}.${++launched}`)
    tell(process.name, 'start')
    const outside = outsideOf(process, schedule, network.link(process, service), () => kill(process))
    const engine = createEngine({
      store,
      subscriptions: app.subscriptions(outside, (kind, text, about) => tell(process.name, kind, text, about)),
      name: process.name,
      logger: silent,
      lease: `${plan.leaseMs}ms`,
      poll: `${plan.pollMs}ms`,
      beat: `${plan.beatMs}ms`,
      page: { events: plan.pageEvents },
      ...process.runtime,
    })
    running.set(slot, { process, engine })
    engine.on('subscription.state', ({ subscription, to }) => {
      if (to.state !== 'failed') return
      tell(process.name, 'halt', `${subscription} ${(to.error as { code?: string } | undefined)?.code ?? 'unknown'}`)
      if (running.get(slot)?.process === process) halted.set(subscription, to.error)
    })
    engine.start().catch((error: unknown) => tell(process.name, 'failed', String(error), error))
  }

  /** With -9. Another process starts soon. */
  function kill(process: Process): void {
    if (!process.isAlive) return
    process.kill()
    tell(process.name, 'kill')
    schedule.in(fate.upTo(300), () => backend.disconnect(process))
    const slot = [...running].find(([, other]) => other.process === process)?.[0]
    if (slot === undefined) return
    running.delete(slot)
    schedule.in(fate.upTo(conditions.goneMs) + 1, () => launch(slot))
  }

  /** Gracefully. It finishes while its successor starts. */
  function replace([slot, { process, engine }]: [number, Running]): void {
    tell(process.name, 'stop')
    running.delete(slot)
    void engine.stop({ timeout: '5s' }).then(() => kill(process))
    launch(slot)
  }

  function rebuilder(): Rebuilder | undefined {
    const { rebuilt } = app
    if (!rebuilt) return undefined
    const end = (process: Process) => {
      process.kill()
      schedule.in(fate.upTo(300), () => backend.disconnect(process))
    }
    const { pageEvents } = plan
    return new Rebuilder({ rebuilt, chance: createChance(seed, 'rebuilder'), open, end, tell, pageEvents })
  }

  function lookAround(rebuilt: Rebuilt): void {
    schedule.in(lookEveryMs, () => {
      void schedule
        .hold(() => rebuilt.look(backend.witness))
        .catch((error: unknown) => {
          // The server crashed since the last call.
          if (!(error instanceof StoreError)) throw error
        })
      if (schedule.now < plan.faultsMs) lookAround(rebuilt)
    })
  }

  function breakThings(operator: SimulatedOperator, builder: Rebuilder | undefined): void {
    const any = () => [...running][fate.below(running.size)]
    const one = () => any()?.[1].process
    every('killEveryMs', () => {
      const process = one()
      if (process) kill(process)
    })
    every('deployEveryMs', () => {
      const found = any()
      if (found) replace(found)
    })
    every('actEveryMs', () => {
      const at = truth.clock.now()
      const who = builder ? fate.pick(['builder', 'builder', 'decider', 'anybody', 'anybody'] as const) : 'anybody'
      if (who === 'anybody') void operator.act(at)
      else if (who === 'decider') void operator.decide(at, (builder as Rebuilder).name)
      else void builder?.act()
    })
    every('pauseEveryMs', () => {
      const process = one()
      const forMs = fate.upTo(conditions.pauseMs)
      process?.stop(forMs)
      if (process) tell(process.name, 'pause', forMs.toFixed(0))
    })
    every('clockEveryMs', () => {
      const process = one()
      const offMs = Math.round((fate.below(2) === 0 ? 1 : -1) * fate.upTo(conditions.clockMs))
      process?.setClock(offMs)
      if (process) tell(process.name, 'clock', String(offMs))
    })
    every('outageEveryMs', () => {
      isStoreUp = false
      tell('store', 'down')
      schedule.in(fate.upTo(conditions.outageMs), () => {
        isStoreUp = true
        tell('store', 'up')
      })
    })
    every('crashEveryMs', () => {
      tell('store', 'crash')
      backend.crash()
    })
    every('illnessEveryMs', () => {
      isWell = false
      tell('service', 'down')
      schedule.in(fate.upTo(conditions.illnessMs), () => {
        isWell = true
        tell('service', 'up')
      })
    })
  }

  function every(fault: keyof Conditions, strike: () => void): void {
    if (plan.conditions[fault] === 0) return
    schedule.in(fate.until(plan.conditions[fault]), () => {
      if (schedule.now >= plan.faultsMs) return
      strike()
      every(fault, strike)
    })
  }

  function calmDown(): void {
    conditions = calm
    isStoreUp = true
    isWell = true
  }

  function heal(): void {
    tell('world', 'heal')
    calmDown()
    app.heal?.()
    halted.clear()
    // The code is fixed: all processes restart with it.
    for (const found of Array.from(running)) {
      if (plan.conditions.killEveryMs > 0) kill(found[1].process)
      else if (app.heal) replace(found)
    }
  }

  async function live(writer: Writer, operator: SimulatedOperator, builder?: Rebuilder): Promise<string | undefined> {
    const quietMs = plan.faultsMs + 2 * plan.conditions.slowMs
    await schedule.run(plan.faultsMs)
    const unsettled = app.settles && (await settle(writer, app.settles))
    if (unsettled !== undefined) return `the faults stopped, but ${unsettled}`
    if (builder && app.rebuilt?.isDebated) {
      calmDown()
      await meanwhile(builder.prepare(quietMs, () => operator.decide(truth.clock.now(), builder.name)))
    }
    heal()
    const left = await converge(writer)
    if (left !== undefined || !builder) return left
    return (await meanwhile(builder.conclude(quietMs))) ?? converge(writer)
  }

  /** Running processes must recover without a restart, which would hide a failure. */
  async function settle(writer: Writer, names: readonly string[]): Promise<string | undefined> {
    tell('world', 'calm')
    calmDown()
    const until = schedule.now + settleMs
    const settling = consumers.filter(({ name }) => names.includes(name))
    let left: string | undefined
    await meanwhile(resumeAll())
    do {
      await schedule.run(schedule.now + lookEveryMs)
      left = await meanwhile(leftToDo(writer, settling, true))
      if (left !== undefined) await meanwhile(resetBreakers())
    } while (left !== undefined && schedule.now < until)
    return left
  }

  async function converge(writer: Writer): Promise<string | undefined> {
    const until = schedule.now + healMs
    await meanwhile(resumeAll())
    let redriveAt = schedule.now
    let left: string | undefined
    while (schedule.now < until) {
      await schedule.run(schedule.now + lookEveryMs)
      left = await meanwhile(leftToDo(writer, consumers, options.mayStayParked ?? false))
      if (left === undefined) return undefined
      await meanwhile(resetBreakers())
      if (await meanwhile(tended())) {
        tell('operator', 'tend')
        halted.clear()
        for (const found of Array.from(running)) replace(found)
      }
      if (schedule.now >= redriveAt) {
        redriveAt = schedule.now + redriveEveryMs
        await meanwhile(redriveAll())
      }
    }
    return left
  }

  /** Virtual time passes while the witness waits for a lock. */
  async function meanwhile<T>(work: Promise<T>): Promise<T> {
    let isOver = false
    const over = work.finally(() => {
      isOver = true
    })
    // Its error is thrown by the caller.
    over.catch(() => undefined)
    while (!isOver) await schedule.run(schedule.now + 10, () => isOver)
    return over
  }

  async function resumeAll(): Promise<void> {
    const made = await Promise.all(
      consumers.map(async ({ name }) =>
        (await backend.witness.subscriptions.partitions(name)).length > 0 ? [name] : [],
      ),
    )
    const act = {
      by: 'simulation',
      act: 'subscription.resume',
      reason: 'to finish',
      at: Math.floor(schedule.now),
      details: {},
    }
    for (const target of made.flat()) await backend.witness.subscriptions.resume(target, { ...act, target })
  }

  /** An isolated breaker stays so until an operator resets it. */
  async function resetBreakers(): Promise<void> {
    if (!app.operatesBreakers) return
    const breakers = await backend.witness.breakers.list()
    const isolated = breakers.filter(({ state }) => state.state === 'isolated')
    const operator = createOperator({ store: backend.witness, subscriptions: [], by: 'operator', ...truth })
    for (const { name } of isolated) await operator.resetBreaker(name, 'all is calm')
  }

  async function tended(): Promise<boolean> {
    return (await app.tend?.(backend.witness, halted)) ?? false
  }

  async function leftToDo(
    writer: Writer,
    these: ReturnType<App['subscriptions']>,
    mayStayParked: boolean,
  ): Promise<string | undefined> {
    if (!writer.isDone) return `${writer.left} appends are missing`
    const { log, subscriptions, letters } = backend.witness
    const head = await log.head()
    if (head < (await log.end())) return `the horizon is at ${head} of ${await log.end()}`
    for (const consumer of these) {
      const { name } = consumer
      const source = consumer.kind === 'subscription' ? consumer.source : undefined
      const end = source ? await source.head() : head
      const states = await subscriptions.partitions(name)
      if (states.length === 0) return `${name} was not created`
      for (const { partition, checkpoint } of states) {
        if (checkpoint.position < end) return `${name}/${partition} is at ${checkpoint.position} of ${end}`
      }
      const held = await letters.summary(name, 1)
      const isLeft =
        !mayStayParked || Object.keys(held.byStatus).some((status) => status !== 'parked' && status !== 'queued')
      if (held.lanes > 0 && isLeft) return `${held.lanes} lanes of ${name} are held (${JSON.stringify(held.byStatus)})`
    }
    return app.left?.(
      backend.witness,
      these.map(({ name }) => name),
    )
  }

  async function redriveAll(): Promise<void> {
    for (const { name } of consumers) {
      const held = await backend.witness.letters.summary(name, 1)
      if (held.lanes === 0) continue
      const outcome = await backend.witness.redrives.ask({
        id: `redrive-${name}-${schedule.steps}`,
        subscription: name,
        act: 'redrive',
        filter: { status: 'parked' },
        by: 'operator',
        reason: 'the code is fixed',
        at: truth.clock.now(),
        expected: undefined,
        rate: undefined,
        stages: [],
        maxFailures: undefined,
      })
      tell('operator', 'redrive', `${name} ${outcome.outcome}`)
    }
  }

  function tell(who: string, kind: string, text = '', about?: unknown): void {
    history.add(schedule.now, who, kind, text, about)
  }
}

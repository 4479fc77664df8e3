import { createEngine, createOperator, defineSubscription, type Engine, type Store, type Subscription } from 'holdfast'
import type { Outside } from '../../src/testing/simulation/app.ts'
import { openServer, openSqlite } from '../../src/testing/simulation/backend.ts'
import { createChance } from '../../src/testing/simulation/chance.ts'
import { checkCommits } from '../../src/testing/simulation/checks.ts'
import { calm } from '../../src/testing/simulation/conditions.ts'
import { History } from '../../src/testing/simulation/history.ts'
import { type CrashPoint, Network } from '../../src/testing/simulation/network.ts'
import { nowhere, outsideOf, servicePlace } from '../../src/testing/simulation/outside.ts'
import { Process } from '../../src/testing/simulation/process.ts'
import { Schedule } from '../../src/testing/simulation/schedule.ts'
import { judgeFinished } from '../sim/judge.ts'
import { judgeEffects, judgeVerified } from './judge.ts'
import { type Scenario, Scene, type Stage, type StoreName } from './scene.ts'
import { stateOf } from './state.ts'
import { notesOf } from './steps.ts'

export interface Finished {
  readonly calls: number
  readonly violations: readonly string[]
  readonly state: readonly string[]
  readonly history: History
  readonly shows: boolean
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }
const open = { server: openServer, file: openSqlite } as const
const lookMs = 50
const healMs = 600_000
/** Longer than any script waits for anything. */
const longestMs = 24 * 3_600_000
/** How soon the server notices that somebody is gone, and somebody else is there. */
const noticedMs = 30
const goneMs = 60

/** Plays a scenario, in which processes die at some calls, and judges what is left when everything came right. */
export async function play(
  scenario: Scenario,
  storeName: StoreName,
  seed: number,
  crashPoints: readonly CrashPoint[] = [],
): Promise<Finished> {
  const schedule = new Schedule(createChance(seed, 'schedule'))
  const history = new History()
  const backend = await open[storeName](new Process('store', schedule, createChance(seed, 'store')).runtime)
  const { witness } = backend
  const running = new Map<number, { readonly process: Process; readonly engine: Engine }>()
  const wanted = new Set<number>()
  const mourners = new Map<Process, () => void>()
  let isStoreUp = true
  let isWell = true
  let born = 0
  const network = new Network({
    schedule,
    chance: createChance(seed, 'network'),
    history,
    conditions: () => calm,
    crashPoints,
    kill,
  })
  const storePlace = { ...backend.place, isUp: () => isStoreUp }
  const service = servicePlace(() => isWell)
  const stage: Stage = {
    witness,
    look: (look) => schedule.hold(() => look(witness)),
    perform,
    sleep,
    launch: (slot) => {
      wanted.add(slot)
      if (!running.has(slot)) launch(slot)
    },
    stop,
    kill: (slot) => {
      wanted.delete(slot)
      const found = running.get(slot)
      if (found) kill(found.process)
    },
    setStore: (isUp) => {
      isStoreUp = isUp
    },
    setService: (well) => {
      isWell = well
    },
    count: (kind) => history.happenings.filter((one) => one.kind === kind).length,
    consumers: (slot) => subscriptionsOf(nowhere, slot),
  }
  const scene = new Scene(stage)
  const slots = Array.from({ length: scenario.processes ?? 1 }, (_, slot) => slot)
  try {
    for (const slot of scenario.begins ?? slots) stage.launch(slot)
    const stuck = await live().catch((error: unknown) => String(error))
    const effects = scene.effects.map(({ handler, key, n }) => `effect ${handler} ${key}-${n}`)
    const notes = notesOf(witness).map((id) => `note ${id}`)
    const state = [...(await stateOf(witness, scenario.isTimed)), ...notes, ...[...new Set(effects)].toSorted()]
    const ending = { witness, history, scene, state }
    return {
      calls: network.calls,
      state,
      history,
      shows: await scenario.shows(ending),
      violations: [
        ...(stuck === undefined ? [] : [`I11 ${stuck}`]),
        ...history.happenings.filter(({ kind }) => kind === 'failed').map(({ who, text }) => `${who}: ${text}`),
        ...(scenario.isBegunAnew ? [] : checkCommits(history)),
        ...judgeEffects(scene, stage.consumers(0)),
        ...(await judgeFinished(witness, scene, history, (await witness.subscriptions.partitions('calls')).length)),
        ...(stuck === undefined
          ? await judgeVerified(
              witness,
              slots.flatMap((slot) => stage.consumers(slot)),
            )
          : []),
        ...(await judgeAudit()),
      ],
    }
  } finally {
    for (const { process } of running.values()) process.kill()
    await backend.close()
  }

  async function live(): Promise<string | undefined> {
    let ended: string | undefined
    const told = scenario.script(scene).then(
      () => '',
      (error: unknown) => `the script: ${String(error)}`,
    )
    void told.then((text) => (ended = text))
    await schedule.run(longestMs, () => ended !== undefined)
    if (ended !== '') return ended ?? 'the script did not come to its end'
    const until = schedule.now + healMs
    for (;;) {
      const left = await leftToDo()
      if (left === undefined || schedule.now >= until) return left
      await schedule.run(schedule.now + lookMs)
    }
  }

  async function leftToDo(): Promise<string | undefined> {
    const end = await witness.log.end()
    for (const { name, source } of stage.consumers(0)) {
      const states = await witness.subscriptions.partitions(name)
      const behind = states.find(({ checkpoint }) => source === undefined && checkpoint.position < end)
      if (states.length === 0 || behind) return `${name} is at ${behind?.checkpoint.position} of ${end}`
      const tried = states.find(({ trials }) => trials.length > 0)
      if (tried) return `${name}/${tried.partition} is still on trial`
      const { byStatus } = await witness.letters.summary(name, 0)
      if ((byStatus.retrying ?? 0) + (byStatus.waiting ?? 0) > 0) return `${name}: ${JSON.stringify(byStatus)}`
      const redrives = await witness.redrives.list({ subscription: name, limit: 100 })
      if (redrives.some(({ status }) => status === 'running')) return `a redrive of ${name} is not over`
    }
    return undefined
  }

  /** In one part, unless the scenario is about several. */
  function subscriptionsOf(outside: Outside, slot: number): Subscription[] {
    return scenario
      .subscriptions(scene, outside, slot)
      .map((one) => (one.kind === 'subscription' ? one : defineSubscription(one, { partitions: 1 })))
  }

  function connect(name: string): { process: Process; store: Store } {
    const process = new Process(name, schedule, createChance(seed, name))
    return { process, store: backend.connect(process, network.link(process, storePlace)) }
  }

  function launch(slot: number): void {
    const { process, store } = connect(`engine-${slot}.${++born}`)
    const outside = outsideOf(process, schedule, network.link(process, service), () => kill(process))
    const { lease = '2s', beat = '1s', poll = '1s', page = { events: 10 }, ...others } = scenario.engine ?? {}
    const engine = createEngine({
      store,
      subscriptions: subscriptionsOf(outside, slot),
      name: process.name,
      logger: silent,
      poll,
      beat,
      lease,
      page,
      ...others,
      ...process.runtime,
    })
    running.set(slot, { process, engine })
    engine.on('subscription.blocked', ({ subscription, by }) => tell(process, 'blocked', `${subscription} ${by}`))
    engine.start().catch((error: unknown) => tell(process, 'failed', String(error)))
  }

  function kill(process: Process): void {
    if (!process.isAlive) return
    process.kill()
    tell(process, 'kill', '')
    schedule.in(noticedMs, () => backend.disconnect(process))
    mourners.get(process)?.()
    const slot = [...running].find(([, one]) => one.process === process)?.[0]
    if (slot === undefined) return
    running.delete(slot)
    schedule.in(goneMs, () => {
      if (wanted.has(slot) && !running.has(slot)) launch(slot)
    })
  }

  async function stop(slot: number): Promise<void> {
    wanted.delete(slot)
    const found = running.get(slot)
    if (!found) return
    const died = new Promise<void>((resolve) => mourners.set(found.process, resolve))
    await Promise.race([died, found.engine.stop()])
    running.delete(slot)
    found.process.kill()
    backend.disconnect(found.process)
  }

  async function perform(work: Parameters<Stage['perform']>[0]): Promise<boolean> {
    const { process, store } = connect(`actor.${++born}`)
    const died = new Promise<false>((resolve) => mourners.set(process, () => resolve(false)))
    const isDone = await Promise.race([died, work(store, process.runtime).then(() => true)])
    if (!isDone) await sleep(goneMs)
    process.kill()
    backend.disconnect(process)
    return isDone
  }

  function tell({ name }: Process, kind: string, text: string): void {
    history.add(schedule.now, name, kind, text)
  }

  function sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void schedule.in(ms, resolve))
  }

  async function judgeAudit(): Promise<string[]> {
    const operator = createOperator({ store: witness, subscriptions: [], by: 'judge' })
    const { ok } = await operator.verifyAudit()
    return ok ? [] : ['I18 the chain of the audit is broken']
  }
}

import { createMemoryBreakerStore, createVirtualRuntime } from 'holdfast/testing'
import { createBreakers } from '../src/breaker/breakers.ts'
import type { DeadLetter, HeldLane } from '../src/dead-letter/letter.ts'
import type { LetterQueue, QueueLimits } from '../src/dead-letter/letter-store.ts'
import { createHandlerState, type HandlerLoopParts } from '../src/engine/handler/handler-state.ts'
import { type Entry, entryOf } from '../src/engine/handler/entry.ts'
import { EngineEmitter } from '../src/engine/events.ts'
import type { Partition } from '../src/engine/ownership/partition.ts'
import { ExclusiveRun } from '../src/engine/crash/exclusive-run.ts'
import { defineHandler, defineSubscription, type HandlerDefinition } from '../src/index.ts'
import type { RedriveTask } from '../src/redrive/redrive.ts'
import type { Trial } from '../src/subscription/subscription-store.ts'
import { systemChannel } from '../src/runtime/system.ts'
import { createScriptedSource } from '../src/testing/source.ts'
import { bank } from './fixtures.ts'

// The state of a handler's loop without the loop, for the tests of its parts.

export interface DeskSetup {
  readonly held?: readonly HeldLane[]
  /** How many letters are in each lane; the first has position 1, and so on. */
  readonly queues?: Readonly<Record<string, number>>
  /** How many letters the store gives at once, over all lanes. */
  readonly most?: number
  readonly tasks?: readonly RedriveTask[]
  readonly only?: 'letters'
  readonly foreign?: boolean
  readonly pageBytes?: number
  readonly marks?: readonly (readonly [number, number])[]
  readonly definition?: Partial<HandlerDefinition<typeof bank>>
}

const traced = [
  'handler.started',
  'handler.completed',
  'handler.failed',
  'handler.skipped',
  'message.nacked',
  'message.dlq',
  'subscription.blocked',
  'subscription.resumed',
] as const

export function heldLane(lane: string, more: Partial<HeldLane> = {}): HeldLane {
  return { lane, status: 'retrying', since: 0, done: undefined, head: 1, headPosition: 1, ...more }
}

/** That a person lets a lane go. */
export function taskOf(lane: string, more: Partial<RedriveTask> = {}): RedriveTask {
  return { redrive: 'r', lane, position: 1, act: 'redrive', by: 'ada', reason: 'mended', rate: undefined, ...more }
}

export function letterOf(lane: string, position: number): DeadLetter {
  const event = {
    id: `${lane}-${position}`,
    type: 'Credited',
    key: lane,
    version: position,
    position,
    body: '{"amount":1}',
    metadata: undefined,
    time: '2026-01-01T00:00:00.000Z',
    schemaVersion: 1,
  }
  return { lane, sequence: position, logged: true, event, attemptsTotal: 3 } as unknown as DeadLetter
}

export function createDeskOf(setup: DeskSetup = {}) {
  const { held = [], queues = {}, most = Number.POSITIVE_INFINITY, foreign = false, marks = [] } = setup
  const runtime = createVirtualRuntime()
  const source = { ...createScriptedSource(), versions: 'none' as const }
  const handler = defineHandler('notify', { events: bank, on: { Credited: () => undefined }, ...setup.definition })
  const subscription = defineSubscription(handler, foreign ? { source } : {})
  const asked: { readonly lanes: readonly string[]; readonly limits: QueueLimits }[] = []
  const reads: { readonly after: number; readonly events: number; readonly bytes: number }[] = []
  const told = { changed: 0, wake: 0, due: 0 }
  const script = {
    tasks: setup.tasks ?? [],
    trials: [] as readonly Trial[],
    isDown: false,
    isOwner: true,
    remaining: new Map(Object.entries(queues)),
  }
  const logged: string[] = []
  const note = (_fields: object, message: string) => void logged.push(message)
  const logger = { info: note, warn: note, error: note }
  const emitter = new EngineEmitter(logger, systemChannel)
  const events: string[] = []
  for (const name of traced) emitter.on(name, (event) => void events.push(`${name} ${'key' in event ? event.key : ''}`))
  const store = {
    subscriptions: {
      load: async () => {
        if (script.isDown) throw new Error('The test took the store away.')
        return { trials: script.trials }
      },
    },
    letters: {
      queues: async (_subscription: string, _partition: number, lanes: readonly string[], limits: QueueLimits) => {
        asked.push({ lanes, limits })
        if (script.isDown) throw new Error('The test took the store away.')
        return lanes.slice(0, most).map((lane): LetterQueue => {
          const count = script.remaining.get(lane) ?? 0
          const all = Array.from({ length: count }, (_, i) => letterOf(lane, i + 1))
          const next = all[limits.perLane]
          return {
            lane,
            letters: all.slice(0, limits.perLane),
            next: next && { sequence: next.sequence, position: next.event.position },
          }
        })
      },
    },
    redrives: {
      advance: async () => undefined,
      due: async (_subscription: string, _partition: number, limit: number) => {
        told.due++
        const given = new Map<string, number>()
        return script.tasks.filter(({ redrive }) => {
          given.set(redrive, (given.get(redrive) ?? 0) + 1)
          return (given.get(redrive) ?? 0) <= limit
        })
      },
      find: async () => undefined,
    },
    inbox: { find: async () => new Map() },
  }
  const share = { partition: 0, of: 1 }
  const parts = {
    store,
    subscription,
    share,
    runtime,
    source: {
      ...source,
      read: (...args: Parameters<typeof source.read>) => {
        reads.push({ after: args[0], ...args[1] })
        if (script.isDown) throw new Error('The test took the source away.')
        return source.read(...args)
      },
    },
    settings: { instance: 'i', only: setup.only, pageBytes: setup.pageBytes ?? 1_000_000, pollMs: 100 },
    state: { checkpoint: { position: 0 }, marks, trials: [], tried: undefined },
    breakers: createBreakers({
      store: { breakers: createMemoryBreakerStore(runtime) },
      processId: 'p',
      runtime,
    }),
    stopping: new AbortController().signal,
    isInherited: false,
    end: 0,
    changed: () => told.changed++,
    wake: () => told.wake++,
    logger,
    emitter,
    exclusiveRun: new ExclusiveRun(runtime.clock),
    watchdog: undefined,
    // As long as nobody says otherwise, the partition is ours.
    ownership: { pause: undefined, lease: {}, isCurrent: () => script.isOwner },
  } as unknown as HandlerLoopParts
  const partition = {
    held: new Map(held.map((lane) => [lane.lane, lane])),
    logged: true,
    now: () => runtime.clock.now(),
  } as unknown as Partition
  const handlerState = createHandlerState(parts, handler, partition)
  /** One that runs, so that it takes a place. */
  const occupy = (count: number) => {
    for (let i = 0; i < count; i++) {
      const entry: Entry = entryOf(handlerState, letterOf(`busy-${i}`, 1_000 + i).event)
      handlerState.running.set(entry, {} as never)
    }
  }
  return {
    handlerState,
    runtime,
    source,
    asked,
    reads,
    told,
    logged,
    events,
    script,
    occupy,
    now: () => runtime.clock.mono(),
  }
}

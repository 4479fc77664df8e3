import type { Logger } from '../engine/events.ts'
import { relevanceOf } from '../engine/interpret.ts'
import { HoldfastError } from '../errors.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions, checkStore } from '../runtime/options.ts'
import type { Runtime } from '../runtime/ports.ts'
import type { Store } from '../store.ts'
import type { Subscription } from '../subscription/subscription.ts'
import { type Answerable, deedOf } from './deed.ts'
import { type Rebuildable, rebuildableOf } from './generation.ts'
import { rebuild, runtimeOf } from './rebuild.ts'
import type { DropOutcome, Gap, SwitchOutcome } from './rebuild-store.ts'

export interface SwitchOptions extends Partial<Runtime>, Answerable {
  readonly store: Store
  /** Which is to be the live one; that of the projection's own code unless you say otherwise. */
  readonly version?: number
  /**
   * How long to wait until the rebuilt one is level. It comes up with the live one first; for the last steps the live one is halted, for
   * two seconds at the most. Without it, one that is behind is refused at once.
   */
  readonly wait?: Duration
  /** Of what it does while it waits. */
  readonly logger?: Logger
  /** Switches although people decided about events that the rebuild had passed without that. */
  readonly evenStrays?: boolean
}

export interface Switched {
  readonly subscription: string
  readonly from: number
  readonly to: number
  /** How many events of the new one are held. */
  readonly held: number
}

/** Nearer than this, the live one is halted for the rest of the way. */
const nearPositions = 2_000
const haltMs = 2_000
const tryMs = 10
const restMs = 200
const mostStrays = 10_000

const switchNames = ['store', 'version', 'wait', 'evenStrays', 'logger', 'by', 'reason', 'clock', 'timers', 'random']

/**
 * Makes a rebuilt version the live one, in one transaction. Processes that have the version that was live are fenced and wait; those
 * that have the new one take over. The same leads back again.
 */
export async function switchRebuild(projection: Rebuildable, options: SwitchOptions): Promise<Switched> {
  checkOptions(options, 'switchRebuild', switchNames)
  checkStore(options.store, 'switchRebuild')
  const { store, wait, evenStrays = false, logger } = options
  const runtime = runtimeOf(options)
  const subscription = rebuildableOf(projection)
  const { name, consumer } = subscription
  const { version = consumer.version } = options
  const own = version === consumer.version ? subscription : undefined
  // To look for strays goes through all letters, so it is done only when the store says that there are some.
  let strays = 0
  const attempt = async (): Promise<SwitchOutcome> => {
    for (;;) {
      const at = runtime.clock.now()
      const deed = deedOf(options, 'projection.switch', name, at, { to: version })
      const outcome = await store.rebuilds.switch({ subscription: name, version, at, strays, deed })
      if (outcome.outcome !== 'strays') return outcome
      strays = await checkStrays(store, name, version, own, evenStrays)
    }
  }
  const first = await attempt()
  const last =
    first.outcome === 'behind' && wait !== undefined
      ? await comeUp({ store, runtime, name, own, attempt, logger, waitMs: toMs(wait, 'wait') })
      : first
  return resultOf(name, version, last)
}

interface ComingUp {
  readonly store: Store
  readonly runtime: Runtime
  readonly name: string
  readonly own: Subscription | undefined
  readonly attempt: () => Promise<SwitchOutcome>
  readonly waitMs: number
  readonly logger: Logger | undefined
}

/** If nobody builds it, this process does for the time being. */
async function comeUp(parts: ComingUp): Promise<SwitchOutcome> {
  const { store, runtime, own, attempt, waitMs, logger } = parts
  const helping = new AbortController()
  const help =
    own && rebuild(own, { ...runtime, store, load: 1, follow: true, signal: helping.signal, ...(logger && { logger }) })
  // It ends with the switch; if it fails, so does the wait.
  help?.catch(() => undefined)
  const until = runtime.clock.mono() + waitMs
  try {
    for (;;) {
      const outcome = await attempt()
      if (outcome.outcome !== 'behind') return outcome
      const near = outcome.gaps.every(({ live, rebuilt }) => live - rebuilt <= nearPositions)
      if (near) {
        const halted = await halt(parts)
        if (halted.outcome !== 'behind') return halted
      }
      if (runtime.clock.mono() >= until) return outcome
      await runtime.timers.sleep(restMs)
    }
  } finally {
    helping.abort()
    await help?.catch(() => undefined)
  }
}

/** The live one stands still for a moment, so that the other can come level. If this process dies, it goes on by itself. */
async function halt({ store, runtime, name, attempt }: ComingUp): Promise<SwitchOutcome> {
  await store.rebuilds.halt(name, haltMs)
  const until = runtime.clock.mono() + haltMs
  for (;;) {
    const outcome = await attempt()
    if (outcome.outcome !== 'behind' || runtime.clock.mono() >= until) return outcome
    await runtime.timers.sleep(tryMs)
  }
}

/** How many strays there are that don't matter, because the code is not about such events. Throws for those that do. */
async function checkStrays(
  store: Store,
  name: string,
  version: number,
  own: Subscription | undefined,
  evenStrays: boolean,
): Promise<number> {
  const { count, positions } = await store.rebuilds.strays(name, version, evenStrays ? 0 : mostStrays)
  if (count === 0 || evenStrays) return count
  const concerned: number[] = []
  for (const position of positions) {
    const { events } = await store.log.readAll(position - 1, { events: 1, bytes: 1 })
    const [event] = events
    const relevance = own && event ? relevanceOf(own, event) : 'unknown'
    if (relevance !== 'outside' && relevance !== 'filtered') concerned.push(position)
  }
  if (concerned.length === 0 && count <= mostStrays) return count
  const shown = concerned.slice(0, 5).join(', ')
  throw new HoldfastError(
    'REBUILD_STRAYS',
    `${name}: people decided about ${concerned.length} events after version ${version} had passed them (positions ${shown}${concerned.length > 5 ? ', …' : ''}).`,
    { hint: 'Drop that version and rebuild it, or switch with evenStrays.' },
  )
}

function resultOf(name: string, version: number, outcome: SwitchOutcome): Switched {
  switch (outcome.outcome) {
    case 'switched': {
      const held = outcome.generation.partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.held, 0)
      return { subscription: name, from: outcome.from, to: version, held }
    }
    case 'live':
      throw new HoldfastError('REBUILD_LIVE', `${name} is live at version ${version} already.`)
    case 'unknown':
      throw unknownVersion(name, version)
    case 'behind':
      throw new HoldfastError(
        'REBUILD_BEHIND',
        `Version ${version} of ${name} is behind the live one: ${show(outcome.gaps)}.`,
        {
          hint: 'Let the rebuild go on, and switch with wait.',
        },
      )
    case 'strays':
      throw new HoldfastError('INTERNAL', `${name}: strays were not looked at.`)
    default:
      return outcome satisfies never
  }
}

function show(gaps: readonly Gap[]): string {
  return gaps.map(({ partition, live, rebuilt }) => `partition ${partition} is at ${rebuilt} of ${live}`).join(', ')
}

function unknownVersion(name: string, version: number): HoldfastError {
  return new HoldfastError('REBUILD_UNKNOWN', `The store has no version ${version} of ${name}.`, {
    hint: 'Rebuild it first.',
  })
}

export interface DropOptions extends Partial<Runtime>, Answerable {
  readonly store: Store
  readonly version: number
}

/** Removes a version that is not live: a rebuild that is not wanted any more, or what was live before. */
export async function dropRebuild(subscription: string, options: DropOptions): Promise<void> {
  checkOptions(options, 'dropRebuild', ['store', 'version', 'by', 'reason', 'clock', 'timers', 'random'])
  checkStore(options.store, 'dropRebuild')
  const { store, version } = options
  const at = runtimeOf(options).clock.now()
  const deed = deedOf(options, 'projection.drop', subscription, at, { version })
  const outcome: DropOutcome = await store.rebuilds.drop(subscription, version, deed)
  if (outcome === 'unknown') throw unknownVersion(subscription, version)
  if (outcome === 'live') {
    throw new HoldfastError('REBUILD_LIVE', `Version ${version} of ${subscription} is the live one.`, {
      hint: 'Switch to another first.',
    })
  }
}

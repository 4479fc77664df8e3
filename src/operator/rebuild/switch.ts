import type { Logger } from '../../engine/events.ts'
import { relevanceOf } from '../../subscription/interpret.ts'
import { HoldfastError } from '../../errors.ts'
import { many } from '../../runtime/count.ts'
import { type Duration, toMs } from '../../runtime/duration.ts'
import { checkOptions, whole } from '../../runtime/options.ts'
import type { Runtime } from '../../runtime/ports.ts'
import type { Store } from '../../store.ts'
import type { Subscription } from '../../subscription/subscription.ts'
import type { OperatorParts } from '../parts.ts'
import { rebuildableOf, type RebuildableSubscription } from '../../rebuild/generation.ts'
import type { DropOutcome, Gap, SwitchOutcome } from '../../rebuild/rebuild-store.ts'
import { build } from './rebuild.ts'

export interface SwitchOptions {
  /** The reason, for the audit. */
  readonly reason: string
  /** The version to make live. Default: the version in this program. */
  readonly version?: number
  /**
   * How long to wait until the rebuilt version has caught up. Close to the end, the live version is halted for up to two seconds so that the
   * rebuilt one can catch up. Default: do not wait; a version that is behind is rejected with `REBUILD_BEHIND`.
   */
  readonly wait?: Duration
  /** The logger of the rebuild that runs while the switch waits. */
  readonly logger?: Logger
  /** Switch even if operators edited, discarded or resolved events that the rebuild had already passed. Default: false. */
  readonly evenStrays?: boolean
}

export interface Switched {
  readonly subscription: string
  readonly from: number
  readonly to: number
  /** How many events of the new version are held. */
  readonly held: number
}

/** If the rebuilt version is at most this far behind, the live version is halted until both are level. */
const nearPositions = 2_000
const haltMs = 2_000
const tryMs = 10
const restMs = 200
const mostStrays = 10_000

const switchNames = ['reason', 'version', 'wait', 'evenStrays', 'logger']

/**
 * Makes a rebuilt version the live one, in one transaction. Processes with the previous version are fenced and wait; processes with the new
 * version take over. Switching back works the same way.
 */
export async function switchRebuild(parts: OperatorParts, name: string, options: SwitchOptions): Promise<Switched> {
  checkOptions(options, 'switchRebuild', switchNames)
  const { store, runtime } = parts
  const { wait, evenStrays = false, logger } = options
  const reason = parts.reasonOf(options.reason)
  const subscription = rebuildableOf(parts.subscriptionOf(name))
  const { version = subscription.consumer.version } = options
  const own = version === subscription.consumer.version ? subscription : undefined
  // The search for strays reads all letters, so it runs only if the store reports that there are some.
  let strays = 0
  const attempt = async (): Promise<SwitchOutcome> => {
    for (;;) {
      const deed = parts.deed({ act: 'projection.switch', target: name, reason, details: { to: version } })
      const outcome = await store.rebuilds.switch({ subscription: name, version, at: deed.at, strays, deed })
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
  readonly own: RebuildableSubscription | undefined
  readonly attempt: () => Promise<SwitchOutcome>
  readonly waitMs: number
  readonly logger: Logger | undefined
}

/** Waits until the version has caught up. This process works on the rebuild meanwhile, in case no other process does. */
async function comeUp(parts: ComingUp): Promise<SwitchOutcome> {
  const { store, runtime, own, attempt, waitMs, logger } = parts
  const helping = new AbortController()
  const building = { load: 1, follow: true, signal: helping.signal, ...(logger && { logger }) }
  const help = own && build({ store, runtime }, own, building)
  // The rebuild ends with the switch. If it fails, the wait runs into its time limit.
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

/** Halts the live version briefly so that the rebuilt one can become level. The halt expires by itself, also if this process dies. */
async function halt({ store, runtime, name, attempt }: ComingUp): Promise<SwitchOutcome> {
  await store.rebuilds.halt(name, haltMs)
  const until = runtime.clock.mono() + haltMs
  for (;;) {
    const outcome = await attempt()
    if (outcome.outcome !== 'behind' || runtime.clock.mono() >= until) return outcome
    await runtime.timers.sleep(tryMs)
  }
}

/** Counts strays that don't matter, because the projection ignores such events. Throws `REBUILD_STRAYS` if one matters. */
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
    `${name}: operators edited, discarded or resolved ${many(concerned.length, 'event')} after version ${version} had passed ${concerned.length === 1 ? 'it' : 'them'} (${concerned.length === 1 ? 'position' : 'positions'} ${shown}${concerned.length > 5 ? ', …' : ''}).`,
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
      throw new HoldfastError('REBUILD_LIVE', `Version ${version} of ${name} is already live.`)
    case 'unknown':
      throw unknownVersion(name, version)
    case 'behind':
      throw new HoldfastError(
        'REBUILD_BEHIND',
        `Version ${version} of ${name} is behind the live version: ${show(outcome.gaps)}.`,
        {
          hint: 'Continue the rebuild, or switch with the option wait.',
        },
      )
    case 'strays':
      throw new HoldfastError('INTERNAL', `${name}: strays were not checked.`)
    default:
      return outcome satisfies never
  }
}

function show(gaps: readonly Gap[]): string {
  return gaps.map(({ partition, live, rebuilt }) => `partition ${partition} is at ${rebuilt} of ${live}`).join(', ')
}

function unknownVersion(name: string, version: number): HoldfastError {
  return new HoldfastError('REBUILD_UNKNOWN', `The store has no version ${version} of ${name}.`, {
    hint: `Rebuild it first: holdfast projections versions ${name}`,
  })
}

export interface DropOptions {
  /** The reason, for the audit. */
  readonly reason: string
  readonly version: number
}

/** Removes a version that is not live: an unwanted rebuild, or a previous version. */
export async function dropRebuild(parts: OperatorParts, subscription: string, options: DropOptions): Promise<void> {
  checkOptions(options, 'dropRebuild', ['reason', 'version'])
  const reason = parts.reasonOf(options.reason)
  const version = whole(options.version, 'version', 1, Number.MAX_SAFE_INTEGER)
  const deed = parts.deed({ act: 'projection.drop', target: subscription, reason, details: { version } })
  const outcome: DropOutcome = await parts.store.rebuilds.drop(subscription, version, deed)
  if (outcome === 'unknown') throw unknownVersion(subscription, version)
  if (outcome === 'live') throw isLiveVersion(subscription, version)
}

export function isLiveVersion(subscription: string, version: number): HoldfastError {
  return new HoldfastError('REBUILD_LIVE', `Version ${version} of ${subscription} is live.`, {
    hint: `Switch to another version first: holdfast projections versions ${subscription}`,
  })
}

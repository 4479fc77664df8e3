import { countAct } from '../breaker/acts.ts'
import type { BreakerState } from '../breaker/breaker.ts'
import type { BreakerRecord } from '../breaker/breaker-store.ts'
import { type Circuit, closedCircuit, readCircuit, stateOf } from '../breaker/circuit.ts'
import { type Input, step } from '../breaker/machine.ts'
import { checkBreakerName } from '../breaker/name.ts'
import { breakerSettings } from '../breaker/settings.ts'
import { HoldfastError, StoreError } from '../errors.ts'
import { nearest } from '../runtime/nearest.ts'
import { checkOptions } from '../runtime/options.ts'
import { announce } from '../subscription/announce.ts'
import type { OperatorParts } from './parts.ts'

const mostSaves = 10
// The defaults: isolating and resetting do not depend on the settings.
const settings = breakerSettings()

export interface IsolateOptions {
  /** Accept a breaker that is not in the store because none of its calls has failed. Default: false. */
  readonly new?: boolean
}

export async function findBreaker(
  parts: OperatorParts,
  given: string,
  options?: IsolateOptions,
): Promise<BreakerState> {
  const mayBeNew = isNewAllowed(options, 'breaker')
  const name = checkBreakerName(given)
  const { breakers } = await parts.store.breakers.load([name])
  await checkKnown(parts, name, breakers[0], mayBeNew)
  return breakers[0]?.state ?? { state: 'closed' }
}

export async function isolateBreaker(
  parts: OperatorParts,
  name: string,
  given: string,
  options?: IsolateOptions,
): Promise<void> {
  const mayBeNew = isNewAllowed(options, 'isolateBreaker')
  const reason = parts.reasonOf(given)
  const deed = { act: 'breaker.isolate', reason, mayBeNew }
  await change(parts, name, deed, { input: 'isolate', by: parts.by, reason })
}

export async function resetBreaker(parts: OperatorParts, name: string, given: string): Promise<void> {
  const deed = { act: 'breaker.reset', reason: parts.reasonOf(given), mayBeNew: false }
  await change(parts, name, deed, { input: 'reset', by: parts.by })
}

function isNewAllowed(options: IsolateOptions = {}, what: string): boolean {
  checkOptions(options, what, ['new'])
  if (options.new === undefined || typeof options.new === 'boolean') return options.new === true
  throw new HoldfastError('OPTION_INVALID', `new is of type ${typeof options.new}.`, { hint: 'Give true or false.' })
}

interface Change {
  readonly act: string
  readonly reason: string
  readonly mayBeNew: boolean
}

/** Engines update breakers concurrently. If the revision changed since the read, the read is repeated. */
async function change(
  parts: OperatorParts,
  given: string,
  { act, reason, mayBeNew }: Change,
  input: Input,
): Promise<void> {
  const { breakers } = parts.store
  const { timers, random } = parts.runtime
  const name = checkBreakerName(given)
  for (let saves = 0; saves < mostSaves; saves++) {
    const { breakers: found, now } = await breakers.load([name])
    const [breaker] = found
    await checkKnown(parts, name, breaker, mayBeNew)
    const circuit = breaker ? readable(name, breaker.record) : closedCircuit()
    const next = step(circuit, input, settings, now)
    const details = { before: circuit.state, after: next.state }
    const deed = parts.deed({ act, target: name, reason, details })
    const saved = { name, state: stateOf(next), record: JSON.stringify(next) }
    if (await breakers.save(saved, breaker?.revision ?? 0, deed)) {
      countAct(breakers)
      return announce(parts.store, { act: 'breaker' })
    }
    await timers.sleep((random.u32() / 2 ** 32) * 20 * (saves + 1))
  }
  throw new StoreError(
    'STORE_BUSY',
    `The breaker ${JSON.stringify(name)} was not changed: other processes changed it during each of ${mostSaves} attempts.`,
    { hint: 'Try again.' },
  )
}

/** An act on a misspelled name would appear to succeed without any effect. */
async function checkKnown(
  { store, subscriptions }: OperatorParts,
  name: string,
  breaker: BreakerRecord | undefined,
  mayBeNew: boolean,
): Promise<void> {
  // The breaker of a handler without a breaker key has the name of the handler, also before the first event.
  const declared = [...subscriptions.values()].flatMap(({ consumer }) =>
    consumer.kind === 'handler' && consumer.breaker && !consumer.breaker.key ? consumer.name : [],
  )
  if (breaker || mayBeNew || declared.includes(name)) return
  const known = (await store.breakers.list()).map((one) => one.name)
  const meant = nearest(name, [...new Set([...known, ...declared])])
  throw new HoldfastError('BREAKER_UNKNOWN', `The breaker ${JSON.stringify(name)} does not exist. Nothing was done.`, {
    hint:
      meant === undefined
        ? 'List the breakers: holdfast breakers list. A breaker that never failed is not in the store; to isolate it, pass `new: true`.'
        : `Did you mean ${meant}?`,
  })
}

/** The act replaces the whole record, so an unreadable one counts as closed. */
function readable(name: string, record: string): Circuit {
  try {
    return readCircuit(name, record)
  } catch {
    return closedCircuit()
  }
}

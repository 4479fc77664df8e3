import { type Circuit, closedCircuit, readCircuit, stateOf } from '../breaker/circuit.ts'
import { type Input, step } from '../breaker/machine.ts'
import { checkBreakerName } from '../breaker/name.ts'
import { breakerSettings } from '../breaker/settings.ts'
import { StoreError } from '../errors.ts'
import type { OperatorParts } from './parts.ts'

const mostSaves = 10
// An act of a person depends on none of them.
const settings = breakerSettings()

export async function isolateBreaker(parts: OperatorParts, name: string, given: string): Promise<void> {
  const reason = parts.reasonOf(given)
  await change(parts, name, reason, 'breaker.isolate', { input: 'isolate', by: parts.by, reason })
}

export async function resetBreaker(parts: OperatorParts, name: string, given: string): Promise<void> {
  const reason = parts.reasonOf(given)
  await change(parts, name, reason, 'breaker.reset', { input: 'reset', by: parts.by })
}

/** Engines use it all the time, so the save may come too late; then it is read again. */
async function change(parts: OperatorParts, given: string, reason: string, act: string, input: Input): Promise<void> {
  const { breakers } = parts.store
  const { timers, random } = parts.runtime
  const name = checkBreakerName(given)
  for (let saves = 0; saves < mostSaves; saves++) {
    const { breaker, now } = await breakers.load(name)
    const circuit = breaker ? readable(name, breaker.record) : closedCircuit()
    const next = step(circuit, input, settings, now)
    const details = { before: circuit.state, after: next.state }
    const deed = parts.deed({ act, target: name, reason, details })
    const saved = { name, state: stateOf(next), record: JSON.stringify(next) }
    if (await breakers.save(saved, breaker?.revision ?? 0, deed)) return
    await timers.sleep((random.u32() / 2 ** 32) * 20 * (saves + 1))
  }
  throw new StoreError(
    'STORE_BUSY',
    `Others changed the breaker ${JSON.stringify(name)} each time that we wanted to.`,
    {
      hint: 'Try again.',
    },
  )
}

/** A person's act replaces the record as a whole, so it mends one that can't be read. */
function readable(name: string, record: string): Circuit {
  try {
    return readCircuit(name, record)
  } catch {
    return closedCircuit()
  }
}

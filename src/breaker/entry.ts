import type { Random } from '../runtime/ports.ts'
import type { BreakerEntry, BreakerPass } from './breaker.ts'
import type { Circuit } from './circuit.ts'

// While probes of other processes are running, their end is unknown: ask again soon.
const probingMs = 1_000
// Only an operator ends isolation. Callers that use `onChange` need not wait for this.
const isolatedMs = 10_000

// Global, because an entry may be reported to another object than the one it came from, if that was evicted in the meantime.
const ended = new WeakSet<BreakerEntry>()

/** Whether this is the first result of a call that was allowed. */
export function isOnce(entry: BreakerEntry): entry is BreakerPass {
  if (entry.entry === 'open' || ended.has(entry)) return false
  ended.add(entry)
  return true
}

/** The answer of a circuit that allows no call now. */
export function shut(circuit: Circuit, now: number): Extract<BreakerEntry, { entry: 'open' }> {
  const afterMs = waitMs(circuit, now)
  // A circuit that is closed now was half-open when it was asked.
  const state = circuit.state === 'closed' ? 'half-open' : circuit.state
  return { entry: 'open', state, retryAt: now + afterMs, afterMs }
}

function waitMs(circuit: Circuit, now: number): number {
  switch (circuit.state) {
    case 'open':
      // The cooldown is over but no call is allowed: another process was first.
      return circuit.reopensAt > now ? circuit.reopensAt - now : probingMs
    case 'isolated':
      return isolatedMs
    case 'half-open':
    case 'closed':
      return probingMs
  }
}

/** Unique with high probability. */
export function createToken(random: Random): string {
  return random.u32().toString(36) + random.u32().toString(36)
}

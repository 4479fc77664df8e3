import type { Random } from '../runtime/ports.ts'
import type { BreakerEntry, BreakerPass } from './breaker.ts'
import type { Circuit } from './circuit.ts'

// While the probes of others are under way there is no telling when; soon.
const probingMs = 1_000
// Only a person knows when. Whoever hears of the change by `onChange` need not wait for it.
const isolatedMs = 10_000

// Of all breakers: an entry may come back to another object than it is from, when that was forgotten in the meantime.
const ended = new WeakSet<BreakerEntry>()

/** Whether it is the end of a call that was let through, and the first that is heard of it. */
export function isOnce(entry: BreakerEntry): entry is BreakerPass {
  if (entry.entry === 'open' || ended.has(entry)) return false
  ended.add(entry)
  return true
}

/** The answer of a circuit that lets nobody through now. */
export function shut(circuit: Circuit, now: number): Extract<BreakerEntry, { entry: 'open' }> {
  const afterMs = waitMs(circuit, now)
  // One that is closed by now was half-open when it was asked.
  const state = circuit.state === 'closed' ? 'half-open' : circuit.state
  return { entry: 'open', state, retryAt: now + afterMs, afterMs }
}

function waitMs(circuit: Circuit, now: number): number {
  switch (circuit.state) {
    case 'open':
      // Where the cooldown is over and still nobody may go through, somebody else was quicker.
      return circuit.reopensAt > now ? circuit.reopensAt - now : probingMs
    case 'isolated':
      return isolatedMs
    case 'half-open':
    case 'closed':
      return probingMs
  }
}

/** Nobody else's, in all likelihood. */
export function createToken(random: Random): string {
  return random.u32().toString(36) + random.u32().toString(36)
}

import type { Engine } from 'holdfast'
import { Finding, shown } from '../door.ts'

export const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

// Nothing takes so long, on whatever machine: after it, something has stopped for good.
const stuckMs = 120_000

/** Waits until everything has its outcome. */
export async function drained(engine: Engine): Promise<void> {
  const stuck = new AbortController()
  const timer = setTimeout(() => stuck.abort(new Error('it takes too long')), stuckMs)
  // Nobody is in its way here, so a store that refuses will refuse for ever.
  const forget = engine.on('subscription.state', ({ to }) => {
    if (to.state === 'blocked') stuck.abort(to.error)
  })
  try {
    await engine.drain({ signal: stuck.signal })
  } catch (error) {
    const { subscriptions } = await engine.status()
    throw new Finding(`the engine stopped before it was through: ${shown(error)} ${shown(subscriptions)}`)
  } finally {
    clearTimeout(timer)
    forget()
  }
}

import type { Engine } from 'holdfast'

/** The state for a probe or a monitor. It contains no values of events. */
export async function health(engine: Engine) {
  const { subscriptions } = await engine.status()
  const parts = subscriptions.map(({ name, state, stored }) => ({
    name,
    state: state.state,
    lagSeconds: stored?.lag.seconds,
    heldLanes: stored?.held.lanes,
  }))
  // A held lane needs an operator; restarting the process or routing requests to another one does not help.
  const isReady = subscriptions.every(({ state, stored }) => state.state !== 'failed' && stored !== undefined)
  return { isReady, subscriptions: parts }
}

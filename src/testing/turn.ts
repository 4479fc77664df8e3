// Saved before any test begins: under the fake timers of a runner (vi.useFakeTimers, mock.timers) a turn would never end.
const nextTurn = setImmediate
const nextTick = process.nextTick.bind(process)
const clock = performance.now.bind(performance)

/** Resolves in the next turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => nextTurn(resolve))
}

/** Resolves when all promises that can be settled are settled. */
export function tick(): Promise<void> {
  return new Promise((resolve) => nextTick(resolve))
}

/** Milliseconds of real time, for time limits. */
export function realMs(): number {
  return clock()
}

// Taken before any test begins: under the fake timers of a runner (vi.useFakeTimers, mock.timers) no turn would ever end.
const nextTurn = setImmediate
const nextTick = process.nextTick.bind(process)
const clock = performance.now.bind(performance)

/** Comes when the loop has gone round once. */
export function turn(): Promise<void> {
  return new Promise((resolve) => nextTurn(resolve))
}

/** Comes when all promises that can be settled are. */
export function tick(): Promise<void> {
  return new Promise((resolve) => nextTick(resolve))
}

/** Milliseconds of real time, for whoever must know when to give up. */
export function realMs(): number {
  return clock()
}

/** A look at the event loop. Each needs the loop to come round, so a machine that is busy with something else makes them fewer. */
const lookMs = 100
const idleLooks = 20
const mostCpuMs = 10_000

/** Resolves with the reason when nothing moves any more, or when it moves without an end. By no clock that a busy machine could hurry. */
export function untilHung(): { readonly hung: Promise<string>; readonly stop: () => void } {
  const { promise, resolve } = Promise.withResolvers<string>()
  const begun = process.cpuUsage()
  let before = performance.eventLoopUtilization()
  let idle = 0
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    idle = performance.eventLoopUtilization(now, before).utilization < 0.1 ? idle + 1 : 0
    before = now
    const { user, system } = process.cpuUsage(begun)
    if (idle >= idleLooks) resolve('nothing moved any more')
    else if (user + system > mostCpuMs * 1_000) resolve('it went on and on')
  }, lookMs)
  return { hung: promise, stop: () => clearInterval(timer) }
}

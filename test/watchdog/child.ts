// A process that is watched, for the tests: `child.ts <what it does> <after in ms> <onBlocked>`.
import { write } from 'node:fs'
import { startWatchdog } from 'holdfast/watchdog'

const [what = '', after = '1000', onBlocked = 'kill'] = process.argv.slice(2)
const watchdog = startWatchdog({ after: Number(after), onBlocked: onBlocked as 'kill' | 'warn' })

/** Blocks the thread without using a core: most of these children only have to stand still. */
function block(ms = Number.POSITIVE_INFINITY): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const acts: Record<string, () => unknown> = {
  // A line break must not come out as one.
  loop: () => {
    watchdog.began('handler some-other, event 1')
    watchdog.began('handler notify-partner,\nevent 0198c7a2')
    for (;;);
  },
  silent: () => block(),
  long: () => {
    watchdog.began('é'.repeat(10_000))
    block()
  },
  /** Promises that never let a timer run are no pause either. */
  promises: async () => {
    for (;;) await Promise.resolve()
  },
  /** For twice as long as is allowed, but with pauses. */
  busy: async () => {
    const until = performance.now() + 2 * Number(after)
    while (performance.now() < until) {
      block(Number(after) / 20)
      await new Promise((resolve) => setImmediate(resolve))
    }
  },
  /** Says when it may be stopped, and waits for a line that tells it to end. */
  wait: async () => {
    console.log('ready')
    for await (const _ of process.stdin) break
  },
  /** Stands still after the watchdog was told to stop. */
  stopped: async () => {
    await watchdog.stop()
    block(2 * Number(after))
  },
  /** Stands still for longer than is allowed, and goes on. */
  burn: () => block(2 * Number(after)),
  /** Nobody reads what it says, so nobody can say anything more. */
  unheard: () => {
    write(2, 'x'.repeat(4_194_304), () => undefined)
    block()
  },
  nothing: () => undefined,
  /** Stands still twice, and pauses between. */
  twice: async () => {
    for (const time of ['first', 'second']) {
      watchdog.began(time)
      block(2 * Number(after))
      await new Promise((resolve) => setTimeout(resolve, Number(after)))
    }
  },
}

process.on('exit', () => console.log('the end'))
await acts[what]?.()

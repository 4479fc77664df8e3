import type { Channel, Clock, Random, Runtime, Timers } from './ports.ts'

// The one file of the core that may touch the real clock, timers, randomness and process; `scripts/boundaries.mjs` keeps it so.

const clock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
}

// Node keeps its timers in 32 bits, and lets one that asks for more fire at once.
const longestTimerMs = 2 ** 31 - 1

const timers: Timers = {
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      let left = ms
      let timer: ReturnType<typeof setTimeout>
      const wait = () => {
        const step = Math.min(left, longestTimerMs)
        left -= step
        timer = setTimeout(left > 0 ? wait : done, step)
      }
      wait()
      signal?.addEventListener('abort', done, { once: true })
    }),
  yield: () => new Promise((resolve) => setImmediate(resolve)),
}

// One system call per 1,024 numbers; an id takes three of them.
const pool = new Uint32Array(1024)
let next = pool.length

const random: Random = {
  u32() {
    if (next === pool.length) {
      crypto.getRandomValues(pool)
      next = 0
    }
    return pool[next++] as number
  },
}

export const systemRuntime: Runtime = { clock, timers, random }

// Not imported, and not asked for more than it has: an older Node should read that it is too old, and not a stack trace.
const diagnostics = globalThis.process?.getBuiltinModule?.('node:diagnostics_channel')
const silence: Channel = { hasSubscribers: false, publish: () => undefined }

export function systemChannel(name: string): Channel {
  return diagnostics?.channel(name) ?? silence
}

import type { Channel, Clock, Random, Runtime, Timers } from './ports.ts'

// The only file of the core that uses the real clock, timers, randomness and process; `scripts/boundaries.mjs` checks this.

const clock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
}

// Node stores timer delays in 32 bits; a longer delay fires at once.
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

// Not imported, and used with care: an older Node should print that it is too old, not a stack trace.
const diagnostics = globalThis.process?.getBuiltinModule?.('node:diagnostics_channel')
const silence: Channel = { hasSubscribers: false, publish: () => undefined }

export function systemChannel(name: string): Channel {
  return diagnostics?.channel(name) ?? silence
}

let engines = 0

/**
 * The name of an engine that was given none: the host and the process, as an operator finds it there. The thread and a number are added where a
 * process has several engines.
 */
export function engineName(): string {
  const host = globalThis.process?.getBuiltinModule?.('node:os')?.hostname() ?? 'unknown'
  const thread = globalThis.process?.getBuiltinModule?.('node:worker_threads')?.threadId ?? 0
  const number = ++engines
  return `${host}:${globalThis.process?.pid ?? 0}${thread > 0 ? `.${thread}` : ''}${number > 1 ? `/${number}` : ''}`
}

import { Worker } from 'node:worker_threads'
import { HoldfastError } from '../errors.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Watchdog } from '../runtime/ports.ts'
import { beats, createMemory, debugged, openMemory, type ThreadOptions, textLength } from './shared.ts'

export interface WatchdogOptions {
  /** How long the main thread may be blocked. Default: '60s'. */
  readonly after?: Duration
  /** Default: 'kill'. A blocked thread can't be stopped in any other way. */
  readonly onBlocked?: 'kill' | 'warn'
}

export interface RunningWatchdog extends Watchdog, AsyncDisposable {
  /** Resolves when the watchdog has stopped. */
  stop(): Promise<void>
}

const leastMs = 100
const longestStepMs = 1_000
// The thread needs little memory, much less than the default of a worker.
const resourceLimits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 }

/**
 * Watches this thread from another one. Code that blocks the thread (an endless loop, a synchronous call that hangs) stops
 * everything in the process: leases are not renewed, signals are not handled, timeouts don't fire. After `after`, the other
 * thread prints on stderr what was started last and kills the process, so that it can be restarted and the event is identified.
 *
 * Processes that are stopped or suspended, and processes with an open inspector (`--inspect`, or a debugger), are ignored. The
 * watchdog does not keep a process alive.
 */
export function startWatchdog(options: WatchdogOptions = {}): RunningWatchdog {
  checkOptions(options, 'startWatchdog', ['after', 'onBlocked'])
  const { after = '60s', onBlocked = 'kill' } = options
  const afterMs = toMs(after, 'after')
  if (afterMs < leastMs) throw invalid(`after is ${afterMs} ms.`, `Give at least ${leastMs} ms.`)
  if (onBlocked !== 'kill' && onBlocked !== 'warn')
    throw invalid(`onBlocked is ${String(onBlocked)}.`, "Give 'kill' or 'warn'.")
  // Ten checks within the limit, at most one per second.
  const stepMs = Math.min(afterMs / 10, longestStepMs)
  const memory = createMemory()
  const { words, text } = openMemory(memory)
  const encoder = new TextEncoder()

  beat()
  const heart = setInterval(beat, stepMs).unref()
  const thread = startThread({ memory, afterMs, stepMs, onBlocked })

  return { began, stop, [Symbol.asyncDispose]: stop }

  function beat(): void {
    Atomics.add(words, beats, 1)
    // Checked here, because the other thread has its own inspector.
    Atomics.store(words, debugged, isInspected() ? 1 : 0)
  }

  function began(what: string): void {
    Atomics.store(words, textLength, encoder.encodeInto(what, text).written)
  }

  async function stop(): Promise<void> {
    clearInterval(heart)
    await thread.terminate()
  }
}

function startThread(workerData: ThreadOptions): Worker {
  const file = import.meta.url.endsWith('.ts') ? './thread.ts' : './thread.js'
  const thread = new Worker(new URL(file, import.meta.url), {
    name: 'holdfast-watchdog',
    workerData,
    resourceLimits,
    // Modules that are loaded into every thread (--import, NODE_OPTIONS) are not loaded into this one.
    execArgv: [],
    env: {},
    // Otherwise Node opens the streams of the process for the thread, and turns a blocking stderr into a non-blocking one.
    stdout: true,
    stderr: true,
  })
  thread.unref()
  thread.on('error', (error: Error) => {
    const detail = 'An endless loop in this process will not be detected.'
    process.emitWarning(`The watchdog stopped: ${error.message}.`, { code: 'HOLDFAST_WATCHDOG', detail })
  })
  return thread
}

/** Some builds of Node have no inspector, and the module can't be imported. */
function isInspected(): boolean {
  return process.features.inspector && process.getBuiltinModule('node:inspector').url() !== undefined
}

function invalid(message: string, hint: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', message, { hint })
}

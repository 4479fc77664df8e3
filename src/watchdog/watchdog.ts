import { Worker } from 'node:worker_threads'
import { HoldfastError } from '../errors.ts'
import { type Duration, toMs } from '../runtime/duration.ts'
import { checkOptions } from '../runtime/options.ts'
import type { Watchdog } from '../runtime/ports.ts'
import { beats, createMemory, debugged, openMemory, type ThreadOptions, textLength } from './shared.ts'

export interface WatchdogOptions {
  /** How long the thread may go without a pause. '60s' unless you say otherwise. */
  readonly after?: Duration
  /** 'kill' unless you say otherwise. Nothing gentler can be done to a thread that listens to nobody. */
  readonly onBlocked?: 'kill' | 'warn'
}

export interface RunningWatchdog extends Watchdog, AsyncDisposable {
  /** It watches no more when this resolves. */
  stop(): Promise<void>
}

const leastMs = 100
const longestStepMs = 1_000
// The thread keeps a few numbers. It must not take the memory that a thread takes by default.
const resourceLimits = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 }

/**
 * Watches this thread from another one. Code that never gives the thread back (a loop without an end, a synchronous call that hangs) stops
 * everything in the process: leases are not renewed, signals are not answered, no timeout can end it. After `after` the other thread says
 * on stderr what was begun last, and kills the process, so that it is started anew, and the event that did it is found.
 *
 * A process that is stopped or asleep is left alone, and so is one whose inspector is open (`--inspect`, or a debugger). The watchdog keeps no process
 * alive.
 */
export function startWatchdog(options: WatchdogOptions = {}): RunningWatchdog {
  checkOptions(options, 'startWatchdog', ['after', 'onBlocked'])
  const { after = '60s', onBlocked = 'kill' } = options
  const afterMs = toMs(after, 'after')
  if (afterMs < leastMs) throw invalid(`after is ${afterMs} ms.`, `Give at least ${leastMs} ms.`)
  if (onBlocked !== 'kill' && onBlocked !== 'warn')
    throw invalid(`onBlocked is ${String(onBlocked)}.`, "Give 'kill' or 'warn'.")
  // Ten looks in the time that is allowed, and at most one a second.
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
    // Asked here and not there: the thread has an inspector of its own.
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
    // Nothing that is loaded into every thread (--import, NODE_OPTIONS) is loaded into this one.
    execArgv: [],
    env: {},
    // Unless they are ours, Node opens those of the process for it, and makes a stderr that waits for its reader one that doesn't.
    stdout: true,
    stderr: true,
  })
  thread.unref()
  thread.on('error', (error: Error) => {
    const detail = 'An endless loop in this process will not be noticed.'
    process.emitWarning(`The watchdog ended: ${error.message}.`, { code: 'HOLDFAST_WATCHDOG', detail })
  })
  return thread
}

/** There are builds of Node without an inspector, where the module can't be imported. */
function isInspected(): boolean {
  return process.features.inspector && process.getBuiltinModule('node:inspector').url() !== undefined
}

function invalid(message: string, hint: string): HoldfastError {
  return new HoldfastError('OPTION_INVALID', message, { hint })
}

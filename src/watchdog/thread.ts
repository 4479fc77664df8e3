import { write } from 'node:fs'
import { workerData } from 'node:worker_threads'
import { beats, debugged, openMemory, type ThreadOptions, textLength } from './shared.ts'

// The thread of the watchdog. It must not depend on the thread that it watches: no `console`, no `process.stderr`, no messages,
// which all go through that thread.

const { memory, afterMs, stepMs, onBlocked } = workerData as ThreadOptions
const { words, text } = openMemory(memory)
/** The time limit for writing a line: a pipe without a reader must not keep the process alive. */
const patienceMs = 1_000
/** A full non-blocking pipe is tried again. */
const againMs = 20

let seen = Atomics.load(words, beats)
let lookedAt = performance.now()
let stillMs = 0
let isTold = false

setInterval(look, stepMs)

function look(): void {
  const now = performance.now()
  // Time in which this thread didn't run either does not count: the process was stopped, or the machine slept.
  const passedMs = Math.min(now - lookedAt, 2 * stepMs)
  lookedAt = now
  const seenBefore = seen
  seen = Atomics.load(words, beats)
  if (seen !== seenBefore || Atomics.load(words, debugged) === 1) {
    stillMs = 0
    isTold = false
    return
  }
  stillMs += passedMs
  if (stillMs < afterMs || isTold) return
  isTold = true
  tell()
}

function tell(): void {
  const begun = new TextDecoder().decode(text.slice(0, Atomics.load(words, textLength))).replaceAll(/\p{Cc}/gu, ' ')
  const seconds = (stillMs / 1_000).toFixed(stillMs < 10_000 ? 1 : 0)
  const parts = [
    `holdfast: the main thread of process ${process.pid} has been blocked for ${seconds} s; nothing else in the process can run.`,
    begun === '' ? 'The running code is unknown.' : `Started last: ${begun}.`,
    'Look for an endless loop or a blocking synchronous call.',
    onBlocked === 'kill'
      ? 'The watchdog ends the process (SIGKILL); startWatchdog({ after }) gives it more time.'
      : 'The watchdog only warns.',
  ]
  const line = `${parts.join(' ')}\n`
  if (onBlocked === 'warn') {
    write(2, line, () => undefined)
    return
  }
  const end = () => process.kill(process.pid, 'SIGKILL')
  const say = () => write(2, line, (error) => (error?.code === 'EAGAIN' ? setTimeout(say, againMs) : end()))
  setTimeout(end, patienceMs)
  say()
}

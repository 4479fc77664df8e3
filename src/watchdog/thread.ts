import { write } from 'node:fs'
import { workerData } from 'node:worker_threads'
import { beats, debugged, openMemory, type ThreadOptions, textLength } from './shared.ts'

// The thread of the watchdog. It must do without the one it watches: no `console`, no `process.stderr`, no messages, which all pass
// through there.

const { memory, afterMs, stepMs, onBlocked } = workerData as ThreadOptions
const { words, text } = openMemory(memory)
/** How long a line may take to be written: a pipe that nobody reads must not save the process. */
const patienceMs = 1_000
/** A pipe that is full, and doesn't let writers wait, is tried again. */
const againMs = 20

let seen = Atomics.load(words, beats)
let lookedAt = performance.now()
let stillMs = 0
let isTold = false

setInterval(look, stepMs)

function look(): void {
  const now = performance.now()
  // Time in which this thread didn't run either is nobody's fault: the process was stopped, the machine slept.
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
    `holdfast: the main thread of process ${process.pid} has not paused for ${seconds} s, and nothing else in it can run.`,
    begun === '' ? 'Nobody has said what was begun.' : `Begun last: ${begun}.`,
    'Look for a loop that does not end, or for a call that waits without an await.',
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

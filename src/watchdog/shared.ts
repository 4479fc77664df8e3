/** Memory that two threads share: the watched thread writes, and the watchdog detects when it stops writing. */
export interface Shared {
  /** [0] grows while the watched thread runs; [1] is 1 while a debugger may hold it; [2] is the length of `text`. */
  readonly words: Int32Array
  /** The work that was started last, in UTF-8. */
  readonly text: Uint8Array
}

export const beats = 0
export const debugged = 1
export const textLength = 2

const wordBytes = 12
const textBytes = 500

export function createMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(wordBytes + textBytes)
}

export function openMemory(memory: SharedArrayBuffer): Shared {
  return { words: new Int32Array(memory, 0, wordBytes / 4), text: new Uint8Array(memory, wordBytes) }
}

/** The options of the watchdog thread. */
export interface ThreadOptions {
  readonly memory: SharedArrayBuffer
  readonly afterMs: number
  /** How often it checks; the watched thread writes at the same interval. */
  readonly stepMs: number
  readonly onBlocked: 'kill' | 'warn'
}

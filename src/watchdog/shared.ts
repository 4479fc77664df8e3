/** What two threads see at the same moment: one writes, and the other can tell when it doesn't any more. */
export interface Shared {
  /** [0] goes up as long as the thread that is watched turns; [1] is 1 while a debugger may hold it; [2] is the length of `text`. */
  readonly words: Int32Array
  /** What was begun last, in UTF-8. */
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

/** What the thread is told when it starts. */
export interface ThreadOptions {
  readonly memory: SharedArrayBuffer
  readonly afterMs: number
  /** How often it looks; the thread that is watched gives a sign as often. */
  readonly stepMs: number
  readonly onBlocked: 'kill' | 'warn'
}

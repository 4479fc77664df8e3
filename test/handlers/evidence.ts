import { closeSync, openSync, readSync, writeSync } from 'node:fs'

/** An effect as the outside sees it: it begins, and ends or fails. One that never does either was cut off. */
export interface EffectLine {
  readonly phase: 'begin' | 'end' | 'failed'
  readonly process: string
  readonly id: string
  readonly key: string
  readonly version: number | undefined
  readonly idempotencyKey: string
  readonly attempt: number
}

/** That an event is done is in the store. Told by the engine, or found there by us. */
export interface FinishLine {
  readonly phase: 'finished'
  readonly process: string
  readonly id: string
}

export type Line = EffectLine | FinishLine
type Unsigned<L> = L extends Line ? Omit<L, 'process'> : never

export interface EvidenceWriter {
  write(line: Unsigned<Line>): void
}

/**
 * The end of a process that has effects. Each is one write to a file that is open for appending, so the lines of all processes have
 * one order, and what was written is there whatever becomes of the process.
 */
export function writeEvidence(file: string, process: string): EvidenceWriter {
  const fd = openSync(file, 'a')
  return {
    write: (line) => void writeSync(fd, `${JSON.stringify({ process, ...line })}\n`),
  }
}

/** The end of whoever judges: everything that was written so far, in order. */
export class Evidence implements Disposable {
  readonly lines: Line[] = []
  readonly #fd: number
  readonly #buffer = Buffer.alloc(1 << 18)
  #offset = 0
  #rest = ''

  constructor(file: string) {
    this.#fd = openSync(file, 'a+')
  }

  /** Reads on. Gives the lines that are new. */
  pull(): readonly Line[] {
    const before = this.lines.length
    for (;;) {
      const bytes = readSync(this.#fd, this.#buffer, 0, this.#buffer.length, this.#offset)
      if (bytes === 0) return this.lines.slice(before)
      this.#offset += bytes
      const parts = (this.#rest + this.#buffer.toString('latin1', 0, bytes)).split('\n')
      this.#rest = parts.pop() as string
      for (const part of parts) this.lines.push(JSON.parse(part) as Line)
    }
  }

  /** Adds what was seen elsewhere before now: whatever is written from here on comes after it. */
  note(lines: readonly Line[]): void {
    this.pull()
    this.lines.push(...lines)
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
  }
}

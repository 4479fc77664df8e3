import type { Io } from '../io.ts'
import { jsonText } from './escape.ts'
import { render, type Text } from './style.ts'
import { type Column, tableLines } from './table.ts'

/** Data goes to stdout and talk to stderr, each through the one door that makes it harmless. */
export class Output {
  /** Whether a program reads it: then stdout has JSON and nothing else. */
  readonly isJson: boolean
  readonly #io: Io
  readonly #hasColour: boolean

  constructor(io: Io, isJson: boolean, mayColour: boolean) {
    this.#io = io
    this.isJson = isJson
    const { NO_COLOR: no = '', TERM: term = '' } = io.env
    this.#hasColour = mayColour && no === '' && term !== 'dumb'
  }

  /** A line of what was asked for. */
  data(...text: Text[]): void {
    this.#io.stdout.write(`${render(text, this.#hasColour && this.#io.stdout.isTTY === true)}\n`)
  }

  /** A line about it. */
  talk(...text: Text[]): void {
    this.#io.stderr.write(`${this.paint(text)}\n`)
  }

  table(columns: readonly Column[], rows: readonly (readonly Text[])[]): void {
    const { isTTY = false, columns: width } = this.#io.stdout
    for (const line of tableLines(columns, rows, isTTY ? width : undefined)) this.data(line)
  }

  /** For programs; where there are several, each has a line. */
  document(value: object): void {
    this.#io.stdout.write(`${jsonText(value)}\n`)
  }

  /** Replaces what stands on the last line of the terminal; nothing where stderr is none. */
  status(text: Text): void {
    if (this.isLive) this.#io.stderr.write(`\r\u001b[K${this.paint(text)}`)
  }

  /** Begins the screen anew, for `--watch`. */
  clear(): void {
    if (this.#io.stdout.isTTY) this.#io.stdout.write('\u001b[H\u001b[2J')
  }

  /** Whether somebody watches: only then is progress shown. */
  get isLive(): boolean {
    return this.#io.stderr.isTTY === true && !this.isJson
  }

  get width(): number {
    return this.#io.stderr.columns ?? 80
  }

  paint(text: Text): string {
    return render(text, this.#hasColour && this.#io.stderr.isTTY === true)
  }
}

import type { Io } from '../io.ts'
import { jsonText } from './escape.ts'
import { dim, render, type Text } from './style.ts'
import { type Column, tableLines } from './table.ts'

/** Writes data to stdout and messages to stderr, both escaped by `render` or `jsonText`. */
export class Output {
  /** With `--json`, stdout has JSON only. */
  readonly isJson: boolean
  readonly #io: Io
  readonly #hasColour: boolean
  #given = ''

  constructor(io: Io, isJson: boolean, mayColour: boolean) {
    this.#io = io
    this.isJson = isJson
    const { NO_COLOR: no = '', TERM: term = '' } = io.env
    this.#hasColour = mayColour && no === '' && term !== 'dumb'
  }

  /** A line of the result, on stdout. */
  data(...text: Text[]): void {
    this.#io.stdout.write(`${render(text, this.#hasColour && this.#io.stdout.isTTY === true)}\n`)
  }

  /** A message about the result, on stderr. */
  talk(...text: Text[]): void {
    this.#io.stderr.write(`${this.paint(text)}\n`)
  }

  /** The next step, on stderr. */
  next(text: string): void {
    this.talk(dim('Next: '), this.hint(text))
  }

  /** Sets the global options of the command line, such as `--store events.db`, for `hint`. */
  carry(given: string): void {
    this.#given = given
  }

  /**
   * A text with commands, each with the global options of this command line: without them it would act on another store, or find none. A
   * new project has its own.
   */
  hint(text: string): string {
    return this.#given === ''
      ? text
      : text.replaceAll(/\bholdfast (?=[a-z])(?!init\b)/g, () => `holdfast ${this.#given} `)
  }

  table(columns: readonly Column[], rows: readonly (readonly Text[])[]): void {
    const { isTTY = false, columns: width } = this.#io.stdout
    for (const line of tableLines(columns, rows, isTTY ? width : undefined)) this.data(line)
  }

  /** A JSON document in one line. */
  document(value: object): void {
    this.#io.stdout.write(`${jsonText(value)}\n`)
  }

  /** Replaces the last line of the terminal. Does nothing if stderr is not a terminal. */
  status(text: Text): void {
    if (this.isLive) this.#io.stderr.write(`\r\u001b[K${this.paint(text)}`)
  }

  /** Clears the screen, for `--watch`. */
  clear(): void {
    if (this.#io.stdout.isTTY) this.#io.stdout.write('\u001b[H\u001b[2J')
  }

  /** Whether progress is shown: stderr is a terminal, and no `--json`. */
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

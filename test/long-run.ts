import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'

interface Kept<Progress> {
  readonly settings: object
  readonly seconds: number
  readonly revisions: readonly string[]
  readonly progress: Progress
}

/** A run of hours that may be cut off at any time, and goes on from the last that was kept. Without a file it begins anew each time. */
export class LongRun<Progress> {
  readonly #file: string | undefined
  readonly #settings: object
  readonly #now: () => number
  readonly #begun: number
  readonly #before: Kept<Progress> | undefined
  /** What is in the file, as far as this run knows. */
  #kept: string | undefined
  progress: Progress

  constructor(file: string | undefined, settings: object, beginning: Progress, now = () => performance.now()) {
    this.#file = file
    this.#now = now
    this.#begun = now()
    this.#settings = settings
    this.#kept = this.#read()
    if (this.#kept !== undefined) this.#before = JSON.parse(this.#kept) as Kept<Progress>
    if (this.#before && !isDeepStrictEqual(this.#before.settings, settings))
      throw new Error(`${file} is of a run with other settings: ${JSON.stringify(this.#before.settings)}.`)
    this.progress = this.#before?.progress ?? beginning
  }

  /** That it took, all of its parts together. */
  get seconds(): number {
    return (this.#before?.seconds ?? 0) + Math.round(this.#now() - this.#begun) / 1_000
  }

  /** The commits that it ran on, the oldest first. */
  get revisions(): readonly string[] {
    return [...new Set([...(this.#before?.revisions ?? []), revision()])]
  }

  keep(progress: Progress): void {
    this.progress = progress
    if (this.#file === undefined) return
    if (this.#read() !== this.#kept)
      throw new Error(`${this.#file} was changed by somebody else: two runs can't keep what they did in one file.`)
    const kept: Kept<Progress> = {
      settings: this.#settings,
      seconds: this.seconds,
      revisions: this.revisions,
      progress,
    }
    this.#kept = `${JSON.stringify(kept)}\n`
    writeFileSync(`${this.#file}.new`, this.#kept)
    renameSync(`${this.#file}.new`, this.#file)
  }

  #read(): string | undefined {
    return this.#file !== undefined && existsSync(this.#file) ? readFileSync(this.#file, 'utf8') : undefined
  }
}

function revision(): string {
  try {
    // What was kept of runs is no part of what runs.
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', ':/', ':(top,exclude)docs/runs')
    return `${git('describe', '--always')}${changed === '' ? '' : '-dirty'}`
  } catch {
    return 'unknown'
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
}

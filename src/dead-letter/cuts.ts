import { Parts } from './parts.ts'

const longest = 64
const shortest = 4
const anywhere = 8

/** A text that ends or starts at an ellipsis, at one or more places, with the length of its longest part that is in a value. */
interface Cut {
  readonly text: string
  readonly side: 'end' | 'start'
  readonly places: number[]
  best: number
}

/** The fragments beside each `…` and `...` of a text. A value that was truncated to a few characters is found there. */
export class Cuts {
  readonly #cuts: readonly Cut[]
  readonly #byPart = new Map<string, Cut[]>()
  readonly #parts: Parts

  constructor(text: string) {
    const cuts = new Map<string, Cut>()
    const add = (side: Cut['side'], cut: string, at: number) => {
      if (cut.length < shortest) return
      const known = cuts.get(side + cut)
      if (known) known.places.push(at)
      else cuts.set(side + cut, { text: cut, side, places: [at], best: 0 })
    }
    for (const { 0: dots, index } of text.matchAll(/["'`]?(?:\.{3}|…)["'`]?/gu)) {
      const [before, after] = [Math.max(0, index - longest), index + dots.length]
      const from = before + text.slice(before, index).lastIndexOf('\uFFFF') + 1
      const [end = ''] = text.slice(after, after + longest).split('\uFFFF')
      add('end', text.slice(from, index), from)
      add('start', end, after)
    }
    this.#cuts = [...cuts.values()]
    for (const cut of this.#cuts) {
      const part = cut.side === 'end' ? cut.text.slice(-shortest) : cut.text.slice(0, shortest)
      const known = this.#byPart.get(part)
      if (known) known.push(cut)
      else this.#byPart.set(part, [cut])
    }
    this.#parts = new Parts([...this.#byPart.keys()].join('\uFFFF'), shortest)
  }

  /** Compares a value with each fragment. Calls `step` for each comparison, and stops when it returns false. */
  find(value: string, step: () => boolean): void {
    for (const at of this.#parts.in(value)) {
      if (!step()) return
      const part = value.slice(at, at + shortest)
      const cuts = this.#byPart.get(part)
      if (cuts === undefined) continue
      let isDone = false
      for (const cut of cuts) {
        const { text, side } = cut
        const isSame = (length: number) =>
          side === 'start'
            ? value[at + length] === text[length]
            : value[at + shortest - 1 - length] === text[text.length - 1 - length]
        if (!step()) return
        // Most places can't be longer than the best one so far: one comparison shows it.
        if (cut.best >= shortest && !isSame(cut.best)) continue
        let length = shortest
        while (length < text.length && isSame(length)) {
          if (!step()) return
          length++
        }
        cut.best = Math.max(cut.best, length)
        isDone ||= cut.best === text.length
      }
      if (!isDone) continue
      const left = cuts.filter(({ best, text }) => best < text.length)
      if (left.length > 0) this.#byPart.set(part, left)
      else this.#byPart.delete(part)
    }
  }

  /** What was found: its place and length. */
  *found(): Generator<readonly [number, number]> {
    for (const { text, side, places, best } of this.#cuts) {
      let has = best
      // A few letters occur in many words, so they must be a whole word here.
      while (has > 0 && has < anywhere && has < text.length && /[\p{L}\p{N}]{2}/u.test(borderOf(text, has, side))) has--
      if (has < shortest) continue
      for (const at of places) yield [side === 'end' ? at + text.length - has : at, has]
    }
  }
}

/** The two characters at the border of a part with `length` characters. */
function borderOf(text: string, length: number, side: Cut['side']): string {
  const at = side === 'end' ? text.length - length : length
  return text.slice(at - 1, at + 1)
}

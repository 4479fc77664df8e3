/** An index of all parts of a fixed length in a text. Most lookups find nothing, so that case is fast. */
export class Parts {
  readonly places = new Map<string, number[]>()
  readonly #length: number
  readonly #filter: Uint8Array
  readonly #shift: number
  readonly #first: number

  constructor(text: string, length: number, isWanted: (part: string) => boolean = () => true) {
    this.#length = length
    const bits = Math.min(22, Math.max(10, Math.ceil(Math.log2(text.length + 1)) + 4))
    this.#filter = new Uint8Array(2 ** bits)
    this.#shift = 32 - bits
    let first = 1
    for (let i = 1; i < length; i++) first = Math.imul(first, 31)
    this.#first = first
    this.#each(text, (at, slot) => {
      const part = text.slice(at, at + length)
      if (part.includes('\uFFFF') || !isWanted(part)) return
      const places = this.places.get(part)
      if (places) places.push(at)
      else this.places.set(part, [at])
      this.#filter[slot] = 1
    })
  }

  /** The places in a value where a part starts that may be in the index. */
  in(value: string): number[] {
    const found: number[] = []
    if (this.places.size === 0) return found
    const filter = this.#filter
    this.#each(value, (at, slot) => {
      if (filter[slot] === 1) found.push(at)
    })
    return found
  }

  /** The places of a part, once: a part that many values share is not walked again for each of them. */
  take(part: string): readonly number[] {
    const places = this.places.get(part)
    if (places === undefined) return []
    this.places.delete(part)
    return places
  }

  /** Uses a rolling hash, because a payload can have millions of characters. */
  #each(text: string, visit: (at: number, slot: number) => void): void {
    const [length, first, shift] = [this.#length, this.#first, this.#shift]
    let hash = 0
    for (let i = 0; i < text.length; i++) {
      if (i >= length) hash = (hash - Math.imul(text.charCodeAt(i - length), first)) | 0
      hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0
      if (i >= length - 1) visit(i - length + 1, Math.imul(hash, 0x9e_37_79_b1) >>> shift)
    }
  }
}

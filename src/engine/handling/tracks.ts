/** The one track of a handler that keeps the order of its partition. No lane has this name. */
export const wholePartition = ''

/** What runs one after the other: a lane, with what is to be done in it, in order. */
export interface Track<Entry> {
  readonly name: string
  readonly entries: Entry[]
  /** One of its entries is being tried. */
  isRunning: boolean
  /** Not before this, by the monotonic clock. */
  readyAt: number
}

/** The tracks that have something to do, and whose turn it is. */
export class Tracks<Entry> {
  readonly #tracks = new Map<string, Track<Entry>>()
  /** In the order in which they became ready, so that a busy one can't keep the others waiting. */
  readonly #ready = new Set<Track<Entry>>()
  readonly #sleeping = new Set<Track<Entry>>()
  readonly #barred = new Set<string>()

  get size(): number {
    return this.#tracks.size
  }

  get(name: string): Track<Entry> | undefined {
    return this.#tracks.get(name)
  }

  add(name: string, entry: Entry): void {
    const track = this.#tracks.get(name) ?? { name, entries: [], isRunning: false, readyAt: 0 }
    this.#tracks.set(name, track)
    track.entries.push(entry)
    if (!track.isRunning && !this.#sleeping.has(track)) this.#makeReady(track)
  }

  /** Nothing of this track is begun until it is unbarred. */
  bar(name: string): void {
    this.#barred.add(name)
    const track = this.#tracks.get(name)
    if (track) this.#ready.delete(track)
  }

  isBarred(name: string): boolean {
    return this.#barred.has(name)
  }

  unbar(name: string): void {
    this.#barred.delete(name)
    const track = this.#tracks.get(name)
    if (track && !track.isRunning && !this.#sleeping.has(track)) this.#makeReady(track)
  }

  /** The next whose turn it is, without taking it. */
  peek(now: number): Track<Entry> | undefined {
    for (const track of this.#sleeping) if (track.readyAt <= now) this.rouse(track)
    const [first] = this.#ready
    return first
  }

  /** All that could be begun. */
  ready(now: number): Iterable<Track<Entry>> {
    this.peek(now)
    return this.#ready
  }

  begin(track: Track<Entry>): void {
    track.isRunning = true
    this.#ready.delete(track)
  }

  /** Its head is over, or goes back: whatever is in it now can go on, at once or not before a time. */
  end(track: Track<Entry>, readyAt = 0): void {
    track.isRunning = false
    track.readyAt = readyAt
    if (track.entries.length === 0) this.#tracks.delete(track.name)
    else if (readyAt > 0) this.#sleeping.add(track)
    else this.#makeReady(track)
  }

  /** It could begin, but must not before a time. */
  postpone(track: Track<Entry>, readyAt: number): void {
    this.#ready.delete(track)
    track.readyAt = readyAt
    this.#sleeping.add(track)
  }

  rouse(track: Track<Entry>): void {
    if (this.#sleeping.delete(track)) this.#makeReady(track)
  }

  /** Takes away everything of a track. What is being tried in it is no longer its concern. */
  clear(track: Track<Entry>): Entry[] {
    this.#ready.delete(track)
    this.#sleeping.delete(track)
    this.#tracks.delete(track.name)
    return track.entries.splice(0)
  }

  #makeReady(track: Track<Entry>): void {
    if (!this.#barred.has(track.name)) this.#ready.add(track)
  }

  /** When the first that sleeps is ready. */
  nextAt(): number | undefined {
    let next: number | undefined
    for (const { readyAt } of this.#sleeping) next = Math.min(next ?? readyAt, readyAt)
    return next
  }
}

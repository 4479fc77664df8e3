/** The single track of a handler with partition order. No lane has this name. */
export const wholePartition = ''

/** A lane with its pending entries, which run one after the other. */
export interface Track<Entry> {
  readonly name: string
  readonly entries: Entry[]
  /** One of its entries is being tried. */
  isRunning: boolean
  /** The earliest start, by the monotonic clock. */
  readyAt: number
}

/** The tracks with pending entries, and their order. */
export class Tracks<Entry> {
  readonly #tracks = new Map<string, Track<Entry>>()
  /** In the order in which they became ready, so that a busy track can't starve the others. */
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

  /** Nothing of this track starts until `unbar`. */
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

  /** The next ready track, without taking it. */
  peek(now: number): Track<Entry> | undefined {
    for (const track of this.#sleeping) if (track.readyAt <= now) this.rouse(track)
    const [first] = this.#ready
    return first
  }

  /** All ready tracks. */
  ready(now: number): Iterable<Track<Entry>> {
    this.peek(now)
    return this.#ready
  }

  begin(track: Track<Entry>): void {
    track.isRunning = true
    this.#ready.delete(track)
  }

  /** The attempt at its head ended or was put back: the track may continue, immediately or at `readyAt`. */
  end(track: Track<Entry>, readyAt = 0): void {
    track.isRunning = false
    track.readyAt = readyAt
    if (track.entries.length === 0) this.#tracks.delete(track.name)
    else if (readyAt > 0) this.#sleeping.add(track)
    else this.#makeReady(track)
  }

  /** A ready track must not start before a time. */
  postpone(track: Track<Entry>, readyAt: number): void {
    this.#ready.delete(track)
    track.readyAt = readyAt
    this.#sleeping.add(track)
  }

  rouse(track: Track<Entry>): void {
    if (this.#sleeping.delete(track)) this.#makeReady(track)
  }

  /** Removes and returns all entries of a track. A running attempt no longer belongs to it. */
  clear(track: Track<Entry>): Entry[] {
    this.#ready.delete(track)
    this.#sleeping.delete(track)
    this.#tracks.delete(track.name)
    return track.entries.splice(0)
  }

  #makeReady(track: Track<Entry>): void {
    if (!this.#barred.has(track.name)) this.#ready.add(track)
  }

  /** When the next sleeping track is ready. */
  nextAt(): number | undefined {
    let next: number | undefined
    for (const { readyAt } of this.#sleeping) next = Math.min(next ?? readyAt, readyAt)
    return next
  }
}

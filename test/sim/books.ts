import type { HeldLane, LetterStatus } from '../../src/dead-letter/letter.ts'
import type { Commit } from '../../src/subscription/subscription-store.ts'
import type { Move } from '../../src/testing/simulation/checks.ts'
import type { CommitWatcher } from './commits.ts'

interface Letter {
  readonly position: number
  readonly sequence: number
  status: LetterStatus
}

interface Lane {
  hold: HeldLane | undefined
  /** Held ones, by position. */
  readonly letters: Map<number, Letter>
}

interface Book {
  readonly lanes: Map<string, Lane>
  readonly laneOf: Map<number, string>
}

/**
 * I7: after every commit the held lanes and their letters agree: the head of a lane is its first letter and has its status, all
 * others are queued, a lane that flows has no letters, and the count of held events moves by as many as there are. An owner that
 * goes on with what it had in memory before a commit was refused, or before an answer was lost, breaks this with its next commit.
 */
export class Books implements CommitWatcher {
  readonly problems: string[] = []
  /** How many lanes were compared, and how many of them in a commit of a process that was in doubt before. */
  compared = 0
  comparedAfterDoubt = 0
  readonly #books = new Map<string, Book>()
  readonly #doubtful = new Set<string>()
  /** Subscriptions of which it is not known what the version that is live now has. */
  readonly #switched = new Set<string>()

  doubted(who: string): void {
    this.#doubtful.add(who)
  }

  moved({ move, subscription }: Move): void {
    if (move === 'drop') return
    this.#books.delete(subscription)
    // What was built beside it may have begun anew in between.
    if (move === 'switch') this.#switched.add(subscription)
    else this.#switched.delete(subscription)
  }

  committed({ lease, counts, held, letters, lanes }: Commit, who: string): void {
    const { subscription } = lease
    if (this.#switched.has(subscription) || subscription.includes('~')) return
    const book = this.#bookOf(subscription)
    const touched = new Set<string>()
    let more = 0
    for (const { lane, sequence, status, event } of held) {
      if (status === 'discarded' || status === 'resolved') continue
      more++
      touched.add(lane)
      book.laneOf.set(event.position, lane)
      this.#laneOf(book, lane).letters.set(event.position, { position: event.position, sequence, status })
    }
    for (const change of letters) {
      const lane = book.laneOf.get(change.position)
      const letter = lane === undefined ? undefined : book.lanes.get(lane)?.letters.get(change.position)
      if (lane === undefined || !letter) {
        this.#tell(subscription, who, `changed the letter ${change.position}, which is not held`)
        continue
      }
      touched.add(lane)
      if (change.change === 'resolved' || change.change === 'discarded') {
        more--
        book.lanes.get(lane)?.letters.delete(change.position)
      } else letter.status = change.status
    }
    for (const { lane, hold } of lanes) {
      touched.add(lane)
      this.#laneOf(book, lane).hold = hold
    }
    if (counts.held !== more) this.#tell(subscription, who, `counted ${counts.held} held events, and wrote ${more}`)
    for (const lane of touched) this.#compare(subscription, lane, this.#laneOf(book, lane), who)
    if (touched.size > 0) this.#doubtful.delete(who)
  }

  #compare(subscription: string, lane: string, { hold, letters }: Lane, who: string): void {
    this.compared++
    if (this.#doubtful.has(who)) this.comparedAfterDoubt++
    // Versions of an unordered source come in before a head that is due. That is sorted out when the head has its turn.
    const isUnordered = subscription === 'arrivals'
    const [head, ...behind] = [...letters.values()].toSorted((a, b) => a.sequence - b.sequence)
    const about = `left ${lane}`
    if (!hold || !head) {
      if (head) this.#tell(subscription, who, `${about} flowing with ${letters.size} held letters`)
      if (hold) this.#tell(subscription, who, `${about} held without a letter`)
      return
    }
    if (isUnordered) return
    if (hold.head !== head.sequence || hold.headPosition !== head.position)
      this.#tell(subscription, who, `${about} held at ${hold.headPosition}, and its first letter is ${head.position}`)
    else if (hold.status !== head.status)
      this.#tell(subscription, who, `${about} ${hold.status}, and its first letter ${head.status}`)
    const wrong = behind.find(({ status }) => status !== 'queued')
    if (wrong) this.#tell(subscription, who, `${about} with the letter ${wrong.position} ${wrong.status} in its queue`)
  }

  #tell(subscription: string, who: string, what: string): void {
    this.problems.push(`I7 ${subscription}: ${who} ${what}`)
  }

  #bookOf(name: string): Book {
    const known = this.#books.get(name)
    if (known) return known
    const book: Book = { lanes: new Map(), laneOf: new Map() }
    this.#books.set(name, book)
    return book
  }

  #laneOf({ lanes }: Book, lane: string): Lane {
    const known = lanes.get(lane)
    if (known) return known
    const made: Lane = { hold: undefined, letters: new Map() }
    lanes.set(lane, made)
    return made
  }
}

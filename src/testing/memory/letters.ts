import type { DeadLetter, HeldLane, Revision } from '../../dead-letter/letter.ts'
import type {
  HeldSummary,
  LaneSummary,
  LetterQueue,
  LetterStats,
  LetterStore,
  QueueLimits,
} from '../../dead-letter/letter-store.ts'
import { mergeLetters } from '../../dead-letter/merge.ts'
import type { FailureClass } from '../../failure/failure.ts'
import { incidentsOf } from './incidents.ts'
import { matches } from './letter-filter.ts'
import { lettersOf, compareText, type Lane, type Letter, type Read, type State, type Subscribed } from './state.ts'

type Changes = 'revise' | 'unrevise' | 'revisions' | 'purgeable' | 'listPurgeable' | 'purge'

/** For the store and for a snapshot of it. */
export function memoryLetters(read: Read) {
  return {
    heldLanes: (subscription, partition) =>
      read(
        'letters.heldLanes',
        (state) =>
          heldLanesOf(state, subscription).flatMap((lane) => (lane.partition === partition ? [lane.hold] : [])),
        [subscription, partition],
      ),
    laneVersions: (subscription, lanes) =>
      read('letters.laneVersions', ({ subscriptions }) => {
        const known = subscriptions.get(subscription)?.lanes
        return new Map(
          lanes.flatMap((lane) => {
            const done = known?.get(lane)?.done
            return done === undefined ? [] : [[lane, done]]
          }),
        )
      }),
    queues: (subscription, partition, lanes, limits) =>
      read('letters.queues', (state) => queuesOf(state, subscription, partition, lanes, limits)),
    present: (subscription, refs) =>
      read('letters.present', (state) => {
        const held = heldOf(state, subscription).filter(({ logged }) => !logged)
        const known = new Set(held.map(({ lane, sequence, event }) => JSON.stringify([lane, sequence, event.id])))
        return refs
          .filter(({ lane, sequence, eventId }) => known.has(JSON.stringify([lane, sequence, eventId])))
          .map(({ lane, sequence, eventId }) => ({ lane, sequence, eventId }))
      }),
    list: ({ subscription, after = 0, limit = 100, ...filter }) =>
      read('letters.list', (state) =>
        lettersOf(state, subscription)
          .filter((letter) => letter.event.position > after && matches(letter, filter))
          .slice(0, limit)
          .map((letter) => whole(state, subscription, letter)),
      ),
    summary: (subscription, oldest) => read('letters.summary', (state) => summaryOf(state, subscription, oldest)),
    lane: (subscription, lane) =>
      read('letters.lane', (state) => {
        const found = heldLanesOf(state, subscription).find((one) => one.lane === lane)
        return found && laneSummary(state, subscription, found.hold)
      }),
    stats: (subscription) => read('letters.stats', (state) => statsOf(state, subscription)),
    incidents: (query) => read('letters.incidents', (state) => incidentsOf(state, query)),
    ofPartition: (subscription: string, partition: number, after: number, limit: number) =>
      read('letters.ofPartition', (state) =>
        lettersOf(state, subscription)
          .filter((letter) => letter.partition === partition && letter.event.position > after)
          .slice(0, limit)
          .map((letter) => whole(state, subscription, letter)),
      ),
  } satisfies Omit<LetterStore, Changes> & Record<string, unknown>
}

function heldOf({ subscriptions }: State, subscription: string): readonly Letter[] {
  return subscriptions.get(subscription)?.partitions.flatMap(({ held }) => [...held.values()]) ?? []
}

export function whole({ subscriptions }: State, subscription: string, letter: Letter): DeadLetter {
  const { event } = letter
  const body = typeof event.body === 'string' ? event.body : new Uint8Array(event.body)
  const revision = revisionOf(subscriptions.get(subscription), letter)
  return { subscription, ...letter, event: { ...event, body }, revision }
}

/** The latest one that was not undone. */
export function revisionOf(
  subscribed: Subscribed | undefined,
  { event, partition }: Pick<Letter, 'event' | 'partition'>,
): Revision | undefined {
  const all = subscribed?.revisions.get(`${event.position}/${partition}`)
  const found = all?.findLast(({ isTakenBack }) => !isTakenBack)
  return found && { number: found.number, body: found.body, by: found.by, reason: found.reason, at: found.at }
}

type Held = Lane & { readonly hold: HeldLane }

/** Longest held first. */
function heldLanesOf({ subscriptions }: State, subscription: string): readonly Held[] {
  return [...(subscriptions.get(subscription)?.lanes.values() ?? [])]
    .filter((lane): lane is Held => lane.hold !== undefined)
    .toSorted((a, b) => a.hold.since - b.hold.since || compareText(a.lane, b.lane))
}

/** The letters of a lane in order: those that are not in the log, and those of the key in the log. */
function laneLetters(
  { partitions, lanes }: Subscribed,
  held: readonly Letter[],
  lane: string,
): Generator<Letter, void, unknown> {
  const bySequence = (a: Letter, b: Letter) => a.sequence - b.sequence || a.event.position - b.event.position
  const { hold, partition = 0 } = lanes.get(lane) ?? {}
  // Like the databases: from the head on, if it is in the log. Sequences of other sources are not versions.
  const head = hold && partitions[partition]?.letters.get(hold.headPosition)
  const from = head?.logged ? (hold?.head ?? 0) : 0
  const foreign = held.filter((letter) => !letter.logged && letter.lane === lane)
  const logged = held.filter(
    ({ logged: isLogged, event }) => isLogged && event.key === lane && (event.version ?? 0) >= from,
  )
  return mergeLetters(foreign.toSorted(bySequence), logged.toSorted(bySequence), ({ event }) => event.position)
}

/** The number of letters of a lane up to a position, and the last position among them. */
export function extentOf(
  state: State,
  subscription: string,
  lane: string,
  through: number,
): { letters: number; until: number } {
  const subscribed = state.subscriptions.get(subscription)
  const letters = subscribed ? laneLetters(subscribed, heldOf(state, subscription), lane) : []
  const positions = Array.from(letters, ({ event }) => event.position).filter((position) => position <= through)
  return { letters: positions.length, until: Math.max(0, ...positions) }
}

function queuesOf(
  state: State,
  subscription: string,
  partition: number,
  names: readonly string[],
  limits: QueueLimits,
): readonly LetterQueue[] {
  const subscribed = state.subscriptions.get(subscription)
  const held = [...(subscribed?.partitions[partition]?.held.values() ?? [])]
  const queues: LetterQueue[] = []
  let { events, bytes } = limits
  for (const lane of names) {
    // Events that did not fit are not part of a queue yet.
    if (events <= 0 || bytes <= 0) break
    const letters: DeadLetter[] = []
    let next: LetterQueue['next']
    for (const letter of subscribed ? laneLetters(subscribed, held, lane) : []) {
      const size = Buffer.byteLength(letter.event.body)
      const isFirst = queues.length === 0 && letters.length === 0
      if (letters.length === Math.min(limits.perLane, events) || (size > bytes && !isFirst)) {
        next = { sequence: letter.sequence, position: letter.event.position }
        break
      }
      bytes -= size
      letters.push(whole(state, subscription, letter))
    }
    if (letters.length === 0 && next) break
    events -= letters.length
    queues.push({ lane, letters, next })
  }
  return queues
}

function headsOf(state: State, subscription: string): Pick<HeldSummary, 'lanes' | 'byStatus'> & { held: number } {
  const partitions = state.subscriptions.get(subscription)?.partitions ?? []
  const held = partitions.reduce((sum, { checkpoint }) => sum + checkpoint.counts.held, 0)
  const heads: Partial<Record<HeldLane['status'], number>> = {}
  const lanes = heldLanesOf(state, subscription)
  for (const { hold } of lanes) heads[hold.status] = (heads[hold.status] ?? 0) + 1
  return { lanes: lanes.length, byStatus: { ...heads, queued: held - lanes.length }, held }
}

function summaryOf(state: State, subscription: string, oldest: number): HeldSummary {
  const { lanes, byStatus, held } = headsOf(state, subscription)
  const first = heldLanesOf(state, subscription).slice(0, oldest)
  return { lanes, letters: held, byStatus, oldest: first.map(({ hold }) => laneSummary(state, subscription, hold)) }
}

function laneSummary(state: State, subscription: string, hold: HeldLane): LaneSummary {
  const subscribed = state.subscriptions.get(subscription)
  const letters = subscribed ? [...laneLetters(subscribed, heldOf(state, subscription), hold.lane)].length : 0
  return { ...hold, letters }
}

function statsOf(state: State, subscription: string): LetterStats {
  const { lanes, byStatus } = headsOf(state, subscription)
  const subscribed = state.subscriptions.get(subscription)
  const counts: Partial<Record<Letter['status'], number>> = { ...byStatus }
  const ended = lettersOf(state, subscription).filter(({ endedAt }) => endedAt !== undefined)
  // A status that both have is of an ended letter that was changed after its end.
  for (const status of new Set(ended.map((letter) => letter.status)))
    counts[status] = ended.filter((letter) => letter.status === status).length
  const byClass: Partial<Record<FailureClass, number>> = {}
  const held = heldLanesOf(state, subscription)
  for (const { hold, partition } of held) {
    const failed = subscribed?.partitions[partition]?.letters.get(hold.headPosition)?.failure?.class
    if (failed) byClass[failed] = (byClass[failed] ?? 0) + 1
  }
  return { lanes, byStatus: counts, byClass, oldest: held[0]?.hold.since }
}

import type { DeadLetter } from '../dead-letter/letter.ts'
import type { LetterFilter } from '../dead-letter/letter-store.ts'
import { isActedOn } from '../redrive/acts.ts'
import type { RedriveAct } from '../redrive/redrive.ts'
import type { Store } from '../store.ts'
import type { Subscription } from '../subscription/subscription.ts'

const perPage = 200

/**
 * The heads that an act would change, in processing order. A letter that is parked, retrying or waiting is the head of its lane. A waiting
 * letter of a handler waits for a breaker.
 */
export async function* headsOf(
  store: Store,
  { name: subscription, consumer }: Subscription,
  act: RedriveAct,
  { status, ...given }: LetterFilter,
): AsyncGenerator<DeadLetter> {
  const breaker = consumer.kind === 'handler' ? 'any' : undefined
  const { lane, position } = given
  // Search by position: the number of letters in the lane does not matter then.
  const held = lane !== undefined && position === undefined ? await store.letters.lane(subscription, lane) : undefined
  const filter = held ? { ...given, position: held.headPosition } : given
  const statuses = (['parked', 'retrying', 'waiting'] as const).filter(
    (wanted) => (status ?? wanted) === wanted && isActedOn(act, { status: wanted, breaker }),
  )
  const walks = statuses.map((wanted) => walk(store, subscription, { ...filter, status: wanted }))
  const next = await Promise.all(walks.map(async (heads) => (await heads.next()).value))
  for (;;) {
    const [first] = [...next.entries()]
      .filter((entry): entry is [number, DeadLetter] => entry[1] !== undefined)
      .toSorted(([, a], [, b]) => a.event.position - b.event.position || a.partition - b.partition)
    if (!first) return
    yield first[1]
    next[first[0]] = (await walks[first[0]]?.next())?.value
  }
}

/** A page can end inside a position that several partitions have; the next page starts at that position again. */
async function* walk(
  { letters }: Store,
  subscription: string,
  filter: LetterFilter,
): AsyncGenerator<DeadLetter, undefined> {
  let after = 0
  let seen = new Set<number>()
  for (;;) {
    const page = await letters.list({ ...filter, subscription, after, limit: perPage + seen.size })
    const last = page.at(-1)?.event.position
    for (const letter of page) if (letter.event.position > after + 1 || !seen.has(letter.partition)) yield letter
    if (last === undefined || page.length < perPage + seen.size) return undefined
    seen = new Set(page.filter(({ event }) => event.position === last).map(({ partition }) => partition))
    after = last - 1
  }
}

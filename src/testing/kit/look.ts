import type { DeadLetter } from '../../dead-letter/letter.ts'
import type { Projection } from '../../projection/projection.ts'
import { read } from '../../projection/read.ts'
import type { Store } from '../../store.ts'

const pageOf = 1_000

/** All rows of a projection, in order of key. */
export async function rowsOf<Row, Columns>(
  store: Store,
  projection: Projection<Row, Columns>,
): Promise<Record<string, Row>> {
  const rows: Record<string, Row> = {}
  let after: string | undefined
  do {
    const page = await read(store, projection).list({ limit: pageOf, ...(after !== undefined && { after }) })
    // A key may be __proto__.
    for (const { key, data } of page.rows)
      Object.defineProperty(rows, key, { value: data, enumerable: true, writable: true, configurable: true })
    after = page.next
  } while (after !== undefined)
  return rows
}

/** The letters of some subscriptions, with any status, in order. */
export async function lettersOf(store: Store, subscriptions: readonly string[]): Promise<DeadLetter[]> {
  const all: DeadLetter[] = []
  for (const subscription of subscriptions) {
    let after = 0
    for (;;) {
      const page = await store.letters.list({ subscription, after, limit: pageOf })
      all.push(...page)
      const last = page.at(-1)
      if (page.length < pageOf || !last) break
      after = last.event.position
    }
  }
  return all
}

export async function heldLetters(store: Store, subscriptions: readonly string[]): Promise<DeadLetter[]> {
  return (await lettersOf(store, subscriptions)).filter(({ endedAt }) => endedAt === undefined)
}

/** The due times of lanes, by name. */
export async function dueLanes(store: Store, subscription: string): Promise<Map<string, number>> {
  const due = new Map<string, number>()
  for (const { partition } of await store.subscriptions.partitions(subscription)) {
    for (const { lane, status, dueAt = 0 } of await store.letters.heldLanes(subscription, partition))
      if (status === 'retrying') due.set(lane, dueAt)
  }
  return due
}

import { defineEvents, defineProjection, type Projection, type Source, type StandardSchema } from 'holdfast'
import { createRandom } from 'holdfast/testing'

/** `n` tells events apart, so that a row can show in which order it got them. */
export interface Posting {
  readonly n: number
  readonly amount: number
}

// By hand: these processes start hundreds of times, and a schema library would be most of their start.
const posting: StandardSchema<Posting> = {
  '~standard': {
    version: 1,
    vendor: 'crash-tests',
    validate: (value) => {
      const { n, amount } = (value ?? {}) as Posting
      if (Number.isSafeInteger(n) && Number.isSafeInteger(amount)) return { value: { n, amount } }
      return { issues: [{ message: 'is no posting' }] }
    },
  },
}

export const ledgerEvents = defineEvents({ Posted: posting })

/** A row that an event lost, repeated or out of its order would change: `trail` depends on all of them and on their order. */
export function ledgerProjection(name: string, spinMs = 0): Projection {
  return defineProjection(name, {
    events: ledgerEvents,
    initial: () => ({ balance: 0, count: 0, trail: 0 }),
    on: {
      Posted: (row, { data }) => {
        spin(spinMs)
        if (row.balance + data.amount < 0) throw new RangeError('The account would be below zero.')
        return {
          balance: row.balance + data.amount,
          count: row.count + 1,
          trail: (row.trail * 31 + data.n) % 1_000_000_007,
        }
      },
    },
    columns: { balance: 'integer' },
    // The kills here are nobody's fault. Whom a death is blamed on is what test/handlers asks.
    maxDeaths: 1_000,
  })
}

function spin(ms: number): void {
  const until = ms > 0 ? performance.now() + ms : 0
  while (until > 0 && performance.now() < until);
}

/** About one in a thousand would bring its account below zero, whatever was there. */
export function nextPosting(random: { below(limit: number): number }, n: number): Posting {
  return { n, amount: random.below(1_000) === 0 ? -1_000_000_000 : random.below(1_000) }
}

export interface Delivery {
  readonly key: string
  readonly version: number
  readonly posting: Posting
}

const shuffledKeys = 40
const blockSize = 50

/**
 * What a bad source delivers, the same for the same seed: events of a block in any order, some of them one to three blocks late,
 * and some of them twice. `deliveries(count)` are the first so many.
 */
export function createShuffle(seed: number): (count: number) => readonly Delivery[] {
  const random = createRandom(seed)
  const versions = new Map<string, number>()
  const late = new Map<number, Delivery[]>()
  const delivered: Delivery[] = []
  let block = 0
  return (count) => {
    while (delivered.length < count) delivered.push(...nextBlock())
    return delivered
  }

  function nextBlock(): Delivery[] {
    const deliveries = late.get(block) ?? []
    late.delete(block)
    for (let i = 0; i < blockSize; i++) {
      const key = `shuffled-${random.below(shuffledKeys)}`
      const version = (versions.get(key) ?? 0) + 1
      versions.set(key, version)
      const delivery = { key, version, posting: nextPosting(random, version) }
      if (random.below(20) > 0) deliveries.push(delivery)
      else {
        const when = block + 1 + random.below(3)
        late.set(when, [...(late.get(when) ?? []), delivery])
      }
    }
    for (let i = 0; i < 5 && delivered.length > 0; i++) {
      deliveries.push(delivered[delivered.length - 1 - random.below(Math.min(200, delivered.length))] as Delivery)
    }
    for (let i = deliveries.length - 1; i > 0; i--) {
      const other = random.below(i + 1)
      ;[deliveries[i], deliveries[other]] = [deliveries[other] as Delivery, deliveries[i] as Delivery]
    }
    block++
    return deliveries
  }
}

/** The bad source. It has as many events as the log has, so that both subscriptions have work at the same time. */
export function shuffledSource(seed: number, head: () => Promise<number>): Source {
  const deliveries = createShuffle(seed)
  return {
    name: 'shuffled',
    versions: 'unordered',
    head,
    read: async (after, { events }) => {
      const until = Math.min(after + events, await head())
      const page = deliveries(until).slice(after, until)
      const records = page.map(({ key, version, posting: data }, i) => ({
        position: after + i + 1,
        id: shuffledId(key, version),
        type: 'Posted',
        key,
        version,
        schemaVersion: 1,
        time: '2026-01-01T00:00:00.000Z',
        body: JSON.stringify(data),
        metadata: undefined,
      }))
      return { events: records, through: records.at(-1)?.position ?? after }
    },
    lag: async (after) => ({ events: Math.max(0, (await head()) - after), since: undefined }),
    onAppend: () => () => undefined,
  }
}

export function shuffledId(key: string, version: number): string {
  return `${key}-${version}`
}

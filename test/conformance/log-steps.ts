import type { RecordedEvent } from '../../src/event/event.ts'
import type { AppendOutcome, ExpectedVersion, LogPage, NewEvent, PageLimits } from '../../src/log/log-store.ts'
import type { Share } from '../../src/source/share.ts'
import { type Knowledge, keys, limits, type OpenPair, type Step } from './knowledge.ts'
import type { Open, Side } from './sides.ts'

function newEvents(knowledge: Knowledge): NewEvent[] {
  const count = knowledge.oneIn(3) ? 1 + knowledge.below(3) : 1
  return Array.from({ length: count }, () => newEvent(knowledge))
}

function newEvent(knowledge: Knowledge): NewEvent {
  const known = knowledge.oneIn(8) ? knowledge.maybe(knowledge.events) : undefined
  const id = known?.id ?? `event-${++knowledge.ids}`
  const isSame = known !== undefined && knowledge.oneIn(2)
  return {
    id,
    type: isSame ? known.type : knowledge.pick(['Opened', 'Moved']),
    schemaVersion: 1,
    time: '2026-01-01T00:00:00.000Z',
    body: isSame ? (known.body as string) : `{ "n":${knowledge.below(3)}, "s":"\\u0000 ü" }`,
    metadata: knowledge.oneIn(3) ? '{"tenant":"t"}' : undefined,
  }
}

function expectation(knowledge: Knowledge, key: string): ExpectedVersion {
  if (knowledge.oneIn(2)) return 'any'
  const actual = knowledge.events.filter((event) => event.key === key).length
  return knowledge.pick(['new', actual, actual, actual + 1])
}

function isHeld(knowledge: Knowledge, key: string): boolean {
  return knowledge.open.some((pair) => pair.keys.has(key))
}

/** Whatever was appended is read again, so that both are known to have the same. */
export async function learnEvents(knowledge: Knowledge, side: Side): Promise<void> {
  const all = await side.clients[0].snapshot((moment) => moment.log.readAll(0, limits))
  knowledge.events.splice(0, knowledge.events.length, ...all.events)
}

export function append(knowledge: Knowledge): Step | undefined {
  const key = knowledge.pick(keys)
  const events = newEvents(knowledge)
  const expected = expectation(knowledge, key)
  const client = knowledge.client()
  if (isHeld(knowledge, key)) return undefined
  // Now and then by hand, which is in the audit.
  const options = knowledge.oneIn(6) ? { deed: knowledge.deed('append') } : undefined
  return {
    name: `append ${key} ${events.map(({ id }) => id).join()} ${expected}`,
    run: async (side) => {
      const outcome = await side.clients[client].log.append(key, events, expected, options)
      if (side.name === 'memory') await learnEvents(knowledge, side)
      return outcome
    },
  }
}

export function begin(knowledge: Knowledge): Step | undefined {
  if (knowledge.open.length === 2) return undefined
  const pair: OpenPair = { of: new Map(), keys: new Set(), positions: [], isAppending: false }
  knowledge.open.push(pair)
  return {
    name: 'begin a transaction',
    run: async (side) => {
      pair.of.set(side.name, await side.begin())
    },
  }
}

export function appendWithin(knowledge: Knowledge): Step | undefined {
  const pair = knowledge.maybe(knowledge.open)
  const key = knowledge.pick(keys)
  const events = newEvents(knowledge)
  const expected = expectation(knowledge, key)
  const client = knowledge.client()
  const other = knowledge.open.some((one) => one !== pair && one.keys.has(key))
  if (!pair || other) return undefined
  const isFirst = !knowledge.isAppending
  pair.isAppending = true
  return {
    name: `append in a transaction ${key} ${events.map(({ id }) => id).join()} ${expected}`,
    run: async (side) => {
      // Gaps of transactions that have ended are settled first. Otherwise it depends on when a reader looks whether it waits for this one.
      if (isFirst) await catchUp(side)
      return side.clients[client].log.append(key, events, expected, { tx: pair.of.get(side.name)?.handle })
    },
    learn: (outcome: AppendOutcome) => {
      if (outcome.outcome !== 'appended') return
      pair.keys.add(key)
      pair.positions.push(...events.map((_, i) => outcome.position - events.length + 1 + i))
    },
  }
}

export function end(knowledge: Knowledge): Step | undefined {
  const pair = knowledge.maybe(knowledge.open)
  if (!pair) return undefined
  const how = knowledge.pick(['commit', 'rollback'] as const)
  knowledge.open.splice(knowledge.open.indexOf(pair), 1)
  if (pair.isAppending && knowledge.isAppending) knowledge.isLoose = true
  return {
    name: `${how} a transaction`,
    run: (side) => ended(knowledge, side, pair, how),
  }
}

async function ended(knowledge: Knowledge, side: Side, pair: OpenPair, how: 'commit' | 'rollback'): Promise<void> {
  await (pair.of.get(side.name) as Open).end(how)
  if (side.name === 'memory') await learnEvents(knowledge, side)
}

/** Two transactions that want the same key: the second waits for the first, whichever way that ends. */
export function collide(knowledge: Knowledge): Step | undefined {
  if (knowledge.open.length > 0) return undefined
  const key = knowledge.pick(keys)
  const [first, second] = [newEvents(knowledge), newEvents(knowledge)]
  const expected = expectation(knowledge, key)
  const hows = [
    knowledge.pick(['commit', 'rollback'] as const),
    knowledge.pick(['commit', 'rollback'] as const),
  ] as const
  const mustWait = isInTheWay(knowledge, key, expected, second)
  return {
    name: `collide at ${key}: ${first.map(({ id }) => id).join()} ${hows[0]}, ${second.map(({ id }) => id).join()} ${expected} ${hows[1]}`,
    run: async (side) => {
      const { log } = side.clients[0]
      const [one, two] = [await side.begin(), await side.begin()]
      const before = await log.append(key, first, 'any', { tx: one.handle })
      const waits = log.append(key, second, expected, { tx: two.handle }).catch((error: unknown) => error)
      if (before.outcome === 'appended' && mustWait) await side.waiting()
      else await waits
      await one.end(hows[0])
      const after = await waits
      await two.end(hows[1])
      if (side.name === 'memory') await learnEvents(knowledge, side)
      return [before, after]
    },
  }
}

function isInTheWay(
  knowledge: Knowledge,
  key: string,
  expected: ExpectedVersion,
  events: readonly NewEvent[],
): boolean {
  const known = new Set(knowledge.events.map(({ id }) => id))
  if (events.some(({ id }) => known.has(id))) return false
  const actual = knowledge.events.filter((event) => event.key === key).length
  return expected === 'any' || expected === actual || (expected === 'new' && actual === 0)
}

/** Only where it does not depend on when a reader looked. */
async function settled(knowledge: Knowledge, side: Side): Promise<void> {
  if (knowledge.isAppending) return
  knowledge.isLoose = false
  await catchUp(side)
}

async function catchUp(side: Side): Promise<void> {
  for (const { log } of side.clients) {
    const top = await log.end()
    while ((await log.head()) < top) await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

/** However far a reader got: nothing that may still be filled is below, and nothing is left out. */
function checkSafe(knowledge: Knowledge, { events, through }: LogPage, after: number): void {
  const missing = knowledge.open.flatMap(({ positions }) => positions).filter((position) => position > after)
  if (missing.some((position) => position <= through))
    throw new Error(`read through ${through}, past ${missing.join()}`)
  const there = knowledge.events.filter(({ position }) => position > after && position <= through)
  if (events.some((event, i) => event.id !== there[i]?.id))
    throw new Error('read what is not there, or left something out')
}

export function readAll(knowledge: Knowledge): Step {
  const client = knowledge.client()
  const last = knowledge.events.at(-1)?.position ?? 0
  const after = knowledge.pick([0, knowledge.below(last + 2)])
  const most = { events: knowledge.pick([1, 3, 1_000]), bytes: knowledge.pick([1, 60, 1_000_000]) }
  const of = 1 + knowledge.below(3)
  const share = { partition: knowledge.below(of), of }
  return {
    name: `read after ${after}, ${most.events} events, ${most.bytes} bytes, ${share.partition} of ${of}`,
    run: async (side) => {
      await settled(knowledge, side)
      const { log } = side.clients[client]
      const all = await readOn(side, client, after, most, share)
      checkSafe(knowledge, await log.readAll(0, limits), 0)
      return knowledge.isLoose ? undefined : all
    },
  }
}

/** How far each page reaches is the store's own matter, as long as somebody who reads on gets all of it. */
async function readOn(side: Side, client: 0 | 1, after: number, most: PageLimits, share: Share) {
  const { log } = side.clients[client]
  const found: RecordedEvent[] = []
  for (let from = after; ; ) {
    const { events, through } = await log.readAll(from, most, share)
    const bytes = events.reduce((sum, { body, metadata = '' }) => sum + Buffer.byteLength(body) + metadata.length, 0)
    if (events.length > most.events || (events.length > 1 && bytes > most.bytes)) throw new Error('a page is too large')
    found.push(...events)
    if (through === from) return [found, share.of === 1 ? through : undefined]
    from = through
  }
}

export function readKey(knowledge: Knowledge): Step {
  const key = knowledge.pick(keys)
  const most = { events: knowledge.pick([1, 2, 100]), bytes: knowledge.pick([1, 60, 1_000_000]) }
  const after = knowledge.below(4)
  return { name: `read ${key} after ${after}`, run: ({ clients }) => clients[0].log.readKey(key, after, most) }
}

export function ends(knowledge: Knowledge): Step {
  const client = knowledge.client()
  const after = knowledge.below((knowledge.events.at(-1)?.position ?? 0) + 1)
  const of = 1 + knowledge.below(2)
  return {
    name: `head, end and lag after ${after}`,
    run: async (side) => {
      await settled(knowledge, side)
      const { log } = side.clients[client]
      const head = await log.head()
      const gap = await log.gap()
      const lag = await log.lag(after, { partition: 0, of })
      const seen = knowledge.isLoose ? undefined : [head, gap && [gap.after, gap.holders.length]]
      return [seen, await log.end(), lag]
    },
  }
}

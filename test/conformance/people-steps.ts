import type { LetterFilter } from '../../src/dead-letter/letter-store.ts'
import { generationTable } from '../../src/rebuild/generation.ts'
import type { AskOutcome } from '../../src/redrive/redrive.ts'
import { type Knowledge, keys, limits, type Step, subscriptions, table } from './knowledge.ts'

const lanes = [...keys, 'far-0', 'far-1', 'far-2'] as const

function filterOf(knowledge: Knowledge): LetterFilter {
  const filters: LetterFilter[] = [
    {},
    {},
    { lane: knowledge.pick(lanes) },
    { partition: knowledge.below(2) },
    { position: knowledge.maybe(knowledge.letters)?.position ?? 1 },
    { status: knowledge.pick(['parked', 'queued', 'resolved', 'discarded']) },
    { type: knowledge.pick(['Opened', 'Came']) },
    { class: knowledge.pick(['permanent', 'transient']) },
    { fingerprint: knowledge.failure().fingerprint },
    { since: 10, until: 200 },
    { text: knowledge.pick(['TOO MUCH', 'far-', 'event-1', '%', 'É', 'no \\u']) },
  ]
  return { ...knowledge.pick(filters), ...(knowledge.oneIn(3) ? knowledge.pick(filters) : {}) }
}

export function letters(knowledge: Knowledge): Step {
  const name = knowledge.pick([...subscriptions, 's~2'])
  const filter = filterOf(knowledge)
  const after = knowledge.pick([0, 5])
  return {
    name: `letters of ${name} ${JSON.stringify(filter)}`,
    run: async ({ clients }) => [
      await clients[0].letters.list({ subscription: name, after, limit: 100, ...filter }),
      await clients[1].letters.list({ subscription: name, limit: 2 }),
    ],
  }
}

export function heldLanes(knowledge: Knowledge): Step {
  const name = knowledge.pick(subscriptions)
  const partition = knowledge.below(2)
  const most = {
    events: knowledge.pick([1, 3, 100]),
    bytes: knowledge.pick([1, 1_000_000]),
    perLane: knowledge.pick([1, 100]),
  }
  const asked = lanes.filter(() => knowledge.oneIn(2))
  const refs = knowledge.letters.slice(-5).map(({ lane, sequence, eventId }) => ({ lane, sequence, eventId }))
  return {
    name: `lanes of ${name}/${partition}`,
    run: async ({ clients: [{ letters: store }] }) => [
      await store.heldLanes(name, partition),
      await store.laneVersions(name, lanes),
      await store.queues(name, partition, asked, most),
      await store.present(name, refs),
    ],
  }
}

export function summaries(knowledge: Knowledge): Step {
  const name = knowledge.pick([...subscriptions, 's~1', 'nobody'])
  const lane = knowledge.pick(lanes)
  return {
    name: `summaries of ${name}`,
    run: async ({ clients: [, { letters: store }] }) => [
      await store.summary(name, 3),
      await store.lane(name, lane),
      await store.stats(name),
      await store.incidents({ subscription: name, limit: 2 }),
      await store.incidents({ subscription: name, open: true, limit: 2 }),
      await store.purgeable(name, 100),
      await store.listPurgeable(name, 100, undefined, 10),
      await store.listPurgeable(name, 100, { partition: 0, position: 3 }, 2),
    ],
  }
}

export function revise(knowledge: Knowledge): Step | undefined {
  const letter = knowledge.maybe(knowledge.letters)
  if (!letter) return undefined
  const { subscription, position } = letter
  const partition = knowledge.pick([undefined, letter.partition])
  const named = { subscription, position, partition }
  const deed = knowledge.deed('revise')
  const isTakenBack = knowledge.oneIn(3)
  const body = `{"n":${knowledge.below(9)}}`
  return {
    name: `${isTakenBack ? 'unrevise' : 'revise'} ${subscription} ${position}`,
    run: async ({ clients: [{ letters: store }] }) => [
      isTakenBack ? await store.unrevise(named, deed) : await store.revise(named, body, deed),
      await store.revisions(named),
    ],
  }
}

export function purge(knowledge: Knowledge): Step {
  const name = knowledge.pick(subscriptions)
  const before = knowledge.pick([50, 1_000])
  const deed = knowledge.deed('purge')
  return { name: `purge ${name}`, run: ({ clients }) => clients[0].letters.purge(name, before, 2, deed) }
}

export function ask(knowledge: Knowledge): Step {
  const id = `redrive-${++knowledge.ids}`
  const client = knowledge.client()
  const isSeen = knowledge.oneIn(4)
  const request = {
    id,
    subscription: knowledge.pick(['s', 's', 'h', 'nobody']),
    act: knowledge.pick(['redrive', 'redrive', 'discard', 'skip'] as const),
    filter: filterOf(knowledge),
    by: 'ann',
    reason: 'it is mended',
    at: knowledge.time++,
    expected: knowledge.pick([undefined, undefined, 'another digest']),
    after: knowledge.pick([undefined, undefined, undefined, 0]),
    rate: knowledge.pick([undefined, 5]),
    stages: knowledge.pick([[], [1], [1, 2]]),
    maxFailures: knowledge.pick([undefined, 0]),
  }
  return {
    name: `ask ${id} ${request.subscription} ${JSON.stringify(request.filter)}`,
    run: async ({ clients }) => {
      const { redrives: store } = clients[client]
      return store.ask(isSeen ? { ...request, expected: (await store.select(request)).digest } : request)
    },
    learn: ({ outcome }: AskOutcome) => {
      if (outcome === 'asked') knowledge.redrives.push(id)
    },
  }
}

export function redrives(knowledge: Knowledge): Step {
  const id = knowledge.maybe(knowledge.redrives) ?? 'nobody'
  const name = knowledge.pick(['s', 'h'])
  const partition = knowledge.below(2)
  const isCancelled = knowledge.oneIn(4)
  const deed = knowledge.deed('cancel')
  const purged = knowledge.oneIn(4)
  const isAdvanced = !knowledge.oneIn(4)
  return {
    name: `redrives of ${name}/${partition}${isCancelled ? `, cancel ${id}` : ''}${purged ? ', purge' : ''}${isAdvanced ? ', advance' : ''}`,
    run: async ({ clients: [{ redrives: store }] }) => [
      isAdvanced ? await store.advance(name) : undefined,
      await store.due(name, partition, 3),
      isCancelled ? await store.cancel(id, deed) : undefined,
      purged ? await store.purge(name, 100, 1_000) : undefined,
      await store.find(id),
      await store.list({ limit: 5 }),
      await store.select({ subscription: name, act: 'redrive', filter: {} }),
      await store.lanes(id, undefined, 0, 10),
    ],
  }
}

export function rebuild(knowledge: Knowledge): Step {
  const version = knowledge.pick([1, 2, 2, 3])
  const kind = knowledge.pick(['begin', 'begin', 'switch', 'switch', 'drop', 'halt'] as const)
  const deed = knowledge.deed(kind)
  const at = knowledge.time++
  return {
    name: `${kind} version ${version} of s`,
    run: async ({ clients: [{ rebuilds: store }] }) => {
      const act = async () => {
        switch (kind) {
          case 'begin':
            return store.begin({
              subscription: 's',
              version,
              kind: 'fold',
              table: generationTable(table, version),
              deed,
            })
          case 'switch': {
            const { count } = await store.strays('s', version, 10)
            return [count, await store.switch({ subscription: 's', version, at, strays: count, deed })]
          }
          case 'drop':
            return store.drop('s', version, deed)
          case 'halt':
            return store.halt('s', 2_000)
          default:
            return kind satisfies never
        }
      }
      return [await act(), await store.list('s'), await store.strays('s', 2, 3), await store.decisions('s', 0, 0, 1e9)]
    },
  }
}

export function rows(knowledge: Knowledge): Step {
  const name = knowledge.pick(['balances', 'balances', 'balances', 'balances__v2', 'balances__v1'])
  const column = knowledge.pick(['key', 'balance', 'owner', 'open'])
  const direction = knowledge.pick(['asc', 'desc'] as const)
  const wheres = [
    { column: 'balance', is: knowledge.pick(['eq', 'gt', 'lte'] as const), value: knowledge.pick([0, 1.5, null]) },
    { column: 'owner', is: 'in', values: ['x', null] },
    { column: 'open', is: 'eq', value: knowledge.pick([true, false]) },
  ] as const
  const where = knowledge.oneIn(2) ? [knowledge.pick(wheres)] : []
  const of = { ...table, name }
  return {
    name: `rows of ${name} by ${column} ${direction}`,
    run: async ({ clients: [{ rows: store }] }) => {
      const query = { where, orderBy: { column, direction }, limit: 2 }
      const first = await store.list(of, { ...query, after: undefined })
      const last = first.at(-1)
      const after = last && { value: last.orderValue, key: last.key }
      return [first, await store.list(of, { ...query, after }), await store.load(of, keys)]
    },
  }
}

export function inbox(knowledge: Knowledge): Step {
  const now = knowledge.pick([0, 49, 50])
  const isSwept = knowledge.oneIn(4)
  return {
    name: 'inbox',
    run: async ({ clients: [{ inbox: store }] }) => [
      await store.find('s', ['x', 'y', '{"a"}'], now),
      await store.find('h', ['x', 'y', '\0'], now),
      isSwept ? await store.sweep(now, 1_000) : undefined,
    ],
  }
}

export function breakers(knowledge: Knowledge): Step {
  const name = knowledge.pick(['mail', 'another'])
  const revision = knowledge.below(3)
  const deed = knowledge.maybeDeed('isolate')
  const state = { state: 'open', openedAt: 5, reopensAt: 9, openings: 1 } as const
  return {
    name: `breaker ${name} at ${revision}`,
    run: async ({ clients: [{ breakers: store }] }) => [
      await store.save({ name, state, record: '{}' }, revision, deed),
      await store.load([name]),
      await store.list(),
    ],
  }
}

export function audit(knowledge: Knowledge): Step {
  const deed = knowledge.deed('look')
  return {
    name: 'audit',
    run: async ({ clients }) => {
      await clients[1].audit.record(deed)
      return clients[0].audit.list(0, 1_000)
    },
  }
}

/** The whole of it by another way: what a copy would be made from. */
export function moment(knowledge: Knowledge): Step {
  const name = knowledge.pick(subscriptions)
  const partition = knowledge.below(2)
  return {
    name: `a moment of ${name}`,
    run: ({ clients }) =>
      clients[1].snapshot(async (seen) => [
        await seen.partitions(name),
        await seen.heldLanes(name, partition),
        await seen.letters(name, partition, 0, 100),
        (await seen.log.readAll(0, limits)).events.length,
      ]),
  }
}

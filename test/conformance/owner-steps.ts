import type {
  ClaimOutcome,
  Commit,
  CommitOutcome,
  SubscriptionSpec,
  Transaction,
} from '../../src/subscription/subscription-store.ts'
import { type Knowledge, keys, leaseMs, owners, type Step, subscriptions, table } from './knowledge.ts'
import { learnEvents } from './log-steps.ts'
import { pageOf } from './pages.ts'
import type { Side } from './sides.ts'

/** `s` is a fold, `t` is SQL, `h` is a handler. */
const specs: Record<string, SubscriptionSpec> = {
  s: { name: 's', table, start: 0, partitions: 2 },
  t: { name: 't', table: undefined, start: 0, partitions: 1 },
  h: { name: 'h', kind: 'handler', table: undefined, start: 0, partitions: 2 },
}

/** How every sequence begins. */
export function registerAll(knowledge: Knowledge): Step {
  const hasRule = knowledge.oneIn(2)
  return {
    name: `register all${hasRule ? ', with a rule' : ''}`,
    run: async (side) => {
      const registered: unknown[] = []
      for (const spec of Object.values(specs)) registered.push(await side.clients[0].subscriptions.register(spec))
      if (hasRule) await side.addRule()
      return registered
    },
  }
}

export function register(knowledge: Knowledge): Step {
  const name = knowledge.pick(subscriptions)
  const spec = { ...(specs[name] as SubscriptionSpec) }
  const others: Partial<SubscriptionSpec>[] = [
    {},
    {},
    { partitions: undefined },
    { partitions: 3 },
    { start: 'existing' },
    { version: 2 },
    { table: { ...table, columns: table.columns.toReversed() } },
    { table: { ...table, columns: [] } },
    { name: 'taken', table },
  ]
  const asked = { ...spec, ...knowledge.pick(others) }
  return { name: `register ${asked.name}`, run: ({ clients }) => clients[0].subscriptions.register(asked) }
}

export function attend(knowledge: Knowledge): Step {
  const client = knowledge.client()
  const names = subscriptions.filter(() => knowledge.oneIn(2))
  const versions = knowledge.oneIn(4) ? { s: 2 } : undefined
  const request = { owner: owners[client], subscriptions: names, leaseMs, versions }
  return {
    name: `${owners[client]} attends ${names.join()}`,
    run: ({ clients }) => clients[client].subscriptions.attend(request),
  }
}

export function leave(knowledge: Knowledge): Step {
  const client = knowledge.client()
  return {
    name: `${owners[client]} leaves`,
    run: ({ clients }) => clients[client].subscriptions.leave(owners[client]),
  }
}

export function claim(knowledge: Knowledge): Step {
  const client = knowledge.client()
  // Now and then by a name that another process has as well.
  const owner = knowledge.oneIn(8) ? knowledge.pick(owners) : owners[client]
  const subscription = knowledge.pick(['s', 's', 's', 't', 'h', 'h', 's~2', 's~2', 's~1', 'nobody'])
  const partition = knowledge.below(2)
  const version = knowledge.pick([undefined, undefined, 1, 2])
  return {
    name: `${owner} claims ${subscription}/${partition}`,
    run: ({ clients }) => clients[client].subscriptions.claim({ subscription, partition, owner, leaseMs, version }),
    learn: (outcome: ClaimOutcome) => {
      if (outcome.outcome === 'claimed') knowledge.leases.unshift({ lease: outcome.lease, client })
    },
  }
}

/** The newest lease of a partition mostly, and now and then one of the past; with the process that has it. */
function leaseOf(knowledge: Knowledge): Knowledge['leases'][number] | undefined {
  if (knowledge.oneIn(6)) return knowledge.maybe(knowledge.leases)
  const newest = new Map(
    knowledge.leases.toReversed().map((had) => [`${had.lease.subscription}/${had.lease.partition}`, had]),
  )
  return knowledge.maybe([...newest.values()])
}

export function keep(knowledge: Knowledge): Step | undefined {
  const had = leaseOf(knowledge)
  if (!had) return undefined
  const { lease, client } = had
  const isReleased = knowledge.oneIn(3)
  return {
    name: `${isReleased ? 'release' : 'renew'} ${lease.subscription}/${lease.partition} ${lease.epoch}`,
    run: ({ clients }) => {
      const { subscriptions: store } = clients[client]
      return isReleased ? store.release(lease) : store.renew(lease, leaseMs)
    },
  }
}

export function elapse(knowledge: Knowledge): Step {
  const ms = knowledge.pick([4_000, 11_000])
  return { name: `${ms} ms pass`, run: (side) => side.elapse(ms) }
}

export function load(knowledge: Knowledge): Step {
  const name = knowledge.pick([...subscriptions, 's~2', 's~1'])
  const partition = knowledge.below(2)
  return {
    name: `load ${name}`,
    run: async ({ clients }) => [
      await clients[0].subscriptions.load(name, partition),
      await clients[1].subscriptions.partitions(name),
    ],
  }
}

export function pause(knowledge: Knowledge): Step {
  const name = knowledge.pick([...subscriptions, 'nobody'])
  const deed = knowledge.deed('pause')
  const at = knowledge.time++
  const isPaused = knowledge.oneIn(3)
  return {
    name: `${isPaused ? 'pause' : 'resume'} ${name}`,
    run: ({ clients }) => {
      const { subscriptions: store } = clients[0]
      return isPaused ? store.pause(name, { reason: 'a bug', at }, deed) : store.resume(name, deed)
    },
  }
}

export function reset(knowledge: Knowledge): Step {
  const name = knowledge.pick([...subscriptions, 'nobody'])
  const deed = knowledge.deed('reset')
  return { name: `reset ${name}`, run: ({ clients }) => clients[0].subscriptions.reset(name, undefined, deed) }
}

export function acquit(knowledge: Knowledge): Step {
  const name = knowledge.pick([...subscriptions, 'nobody'])
  const partition = knowledge.pick([0, 1])
  const instance = knowledge.pick(['p1', 'p2'])
  return {
    name: `acquit ${instance} of ${name}/${partition}`,
    run: ({ clients }) => clients[0].subscriptions.acquit(name, partition, instance),
  }
}

export async function commit(knowledge: Knowledge, side: Side): Promise<Step | undefined> {
  const had = leaseOf(knowledge)
  if (!had) return undefined
  const { lease, client } = had
  const page = await pageOf(knowledge, side, lease)
  return {
    name: `commit ${lease.subscription}/${lease.partition} ${lease.epoch} from ${page.from} to ${page.to.position}`,
    run: ({ clients }) => clients[client].subscriptions.commit(page),
    learn: (outcome: CommitOutcome) => learnCommit(knowledge, page, outcome),
  }
}

/** The same with statements of the user's own, of which some fail. */
export async function perform(knowledge: Knowledge, side: Side): Promise<Step | undefined> {
  const had = leaseOf(knowledge)
  if (!had) return undefined
  const { lease, client } = had
  const page = { ...(await pageOf(knowledge, side, lease)), table: undefined, rows: [] }
  const numbers = Array.from({ length: 1 + knowledge.below(3) }, () => knowledge.below(40))
  const attempts = numbers.map(() => knowledge.oneIn(3))
  const key = knowledge.oneIn(3) && knowledge.open.length === 0 ? knowledge.pick(keys) : undefined
  const id = `event-${++knowledge.ids}`
  return {
    name: `perform ${lease.subscription}/${lease.partition} ${lease.epoch}: ${numbers.join()} ${key ?? ''}`,
    run: async (on) => {
      const { subscriptions: store, log } = on.clients[client]
      const event = { id, type: 'Noted', schemaVersion: 1, time: '', body: '{}', metadata: undefined }
      const work = async (tx: Transaction): Promise<Commit> => {
        for (const [i, n] of numbers.entries()) {
          // A failed attempt is taken back, and what is not attempted fails as a whole.
          if (attempts[i]) await tx.attempt(() => on.note(tx.handle, n)).catch(() => undefined)
          else await tx.run(() => on.note(tx.handle, n))
        }
        if (key) await tx.run(() => log.append(key, [event], 'any', { tx: tx.handle }))
        return page
      }
      const outcome = await store.perform(lease, work).catch((error: unknown) => error)
      if (on.name === 'memory') await learnEvents(knowledge, on)
      return [outcome, await on.notes()]
    },
    learn: ([outcome]: [CommitOutcome | Error]) => {
      if ('outcome' in outcome) learnCommit(knowledge, page, outcome)
    },
  }
}

function learnCommit(knowledge: Knowledge, { lease, held, rows }: Commit, { outcome }: CommitOutcome): void {
  if (outcome !== 'committed') return
  const { subscription, partition } = lease
  for (const { lane, sequence, event } of held)
    knowledge.letters.push({ subscription, partition, lane, sequence, position: event.position, eventId: event.id })
  for (const { key, version } of rows) knowledge.rowVersions.set(`${subscription} ${key}`, version)
}

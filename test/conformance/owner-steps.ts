import type { HeldLane, NewLetter } from '../../src/dead-letter/letter.ts'
import type { RowWrite, TableSpec } from '../../src/projection/row-store.ts'
import { generationTable } from '../../src/rebuild/generation.ts'
import type { RedriveProgress } from '../../src/redrive/redrive.ts'
import type {
  ClaimOutcome,
  Commit,
  CommitOutcome,
  LaneWrite,
  Lease,
  LetterChange,
  SubscriptionSpec,
  Transaction,
} from '../../src/subscription/subscription-store.ts'
import { type Knowledge, keys, leaseMs, owners, type Step, subscriptions, table } from './knowledge.ts'
import { learnEvents } from './log-steps.ts'
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
  const deed = knowledge.maybeDeed('pause')
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
  const deed = knowledge.maybeDeed('reset')
  return { name: `reset ${name}`, run: ({ clients }) => clients[0].subscriptions.reset(name, undefined, deed) }
}

export function acquit(knowledge: Knowledge): Step {
  const instance = knowledge.pick(['p1', 'p2'])
  return { name: `acquit ${instance}`, run: ({ clients }) => clients[0].subscriptions.acquit(instance) }
}

/** What a commit has in it depends on where the partition stands, which both know. */
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

async function pageOf(knowledge: Knowledge, side: Side, lease: Lease): Promise<Commit> {
  const { subscription, partition } = lease
  const state = await side.clients[0].subscriptions.load(subscription, partition)
  const position = state?.checkpoint.position ?? 0
  const target = position + (knowledge.oneIn(3) ? 0 : knowledge.below(4))
  const held = letters(knowledge, lease)
  const ownTable = tableOf(subscription)
  const known = knowledge.letters.filter((one) => one.subscription === subscription && one.partition === partition)
  return {
    lease,
    leaseMs,
    from: knowledge.oneIn(10) ? position + 1 : position,
    commits: knowledge.oneIn(2) ? state?.checkpoint.commits : undefined,
    to: { position: target, eventId: `e${target}`, eventType: 'T', eventTime: undefined },
    at: knowledge.time++,
    counts: { applied: 1, duplicate: 0, filtered: 0, held: held.length, discarded: 0 },
    table: ownTable,
    rows: ownTable ? rowsOf(knowledge, subscription) : [],
    lanes: lanes(knowledge, held, known),
    held,
    letters: knowledge.oneIn(2) ? changesOf(knowledge, known) : [],
    marks: knowledge.oneIn(4) ? [[target + 1, target + 1 + knowledge.below(3)]] : undefined,
    tried: knowledge.oneIn(4) ? target + 5 : undefined,
    trial: knowledge.oneIn(4) ? { position: target + 1, instance: knowledge.pick(['p1', 'p2']) } : undefined,
    endedTrials: knowledge.oneIn(4) ? [target, target + 1] : undefined,
    inbox: knowledge.oneIn(4)
      ? [
          {
            key: knowledge.pick(['x', 'y', '{"a"}']),
            result: knowledge.pick([null, '1']),
            until: knowledge.pick([undefined, 50]),
          },
        ]
      : undefined,
    redriven: knowledge.oneIn(2) ? progress(knowledge, known) : undefined,
    evenPaused: knowledge.oneIn(6) ? true : undefined,
  }
}

/** Of the live one, or of a generation beside it. */
function tableOf(subscription: string): TableSpec | undefined {
  if (!subscription.startsWith('s')) return undefined
  return subscription === 's' ? table : generationTable(table, Number(subscription.slice(2)))
}

function rowsOf(knowledge: Knowledge, subscription: string): RowWrite[] {
  const chosen = keys.filter(() => knowledge.oneIn(4))
  return chosen.map((key) => {
    const before = knowledge.rowVersions.get(`${subscription} ${key}`) ?? 0
    // Now and then one that is there already, which must not happen.
    const version = knowledge.oneIn(20) ? before : before + 1
    const columns = [
      knowledge.below(5) - 2,
      knowledge.pick([null, 'x', 'y', 'ü', `${key}-own`]),
      knowledge.pick([null, true, false]),
    ]
    return { key, version, position: version, json: `{ "v":${version} }`, columns }
  })
}

function letters(knowledge: Knowledge, { subscription, partition }: Lease): NewLetter[] {
  const used = new Set(
    knowledge.letters.flatMap((one) => (one.subscription === subscription ? [`${one.partition}/${one.position}`] : [])),
  )
  return Array.from({ length: knowledge.pick([0, 0, 1, 2]) }, (): NewLetter[] => {
    const status = knowledge.pick(['parked', 'parked', 'queued', 'waiting', 'retrying', 'discarded'] as const)
    const failure = knowledge.oneIn(4) ? undefined : knowledge.failure()
    const ending = status === 'discarded' ? { ending: { by: 'policy', reason: 'mail to nobody' } } : {}
    const event = knowledge.oneIn(2) ? knowledge.maybe(knowledge.events) : undefined
    if (event && !used.has(`${partition}/${event.position}`)) {
      used.add(`${partition}/${event.position}`)
      const own = { lane: event.key, sequence: event.version as number, status, logged: true, event, failure }
      return [{ ...own, ...ending }]
    }
    const position = knowledge.foreign++
    // Keys of the log and lanes of other sources are never the same.
    const lane = `far-${knowledge.below(3)}`
    const sequence = position - 1_000_000
    const body = knowledge.oneIn(3) ? new Uint8Array([0xff, 0, 123]) : '{"a":"\\u0000"}'
    const far = { position, id: `far-${position}`, type: 'Came', key: lane, version: sequence, schemaVersion: 1 }
    const whole = { ...far, time: '2026-01-01T00:00:00.000Z', body, metadata: undefined }
    return [{ lane, sequence, status, logged: false, event: whole, failure, ...ending }]
  }).flat()
}

type Known = { readonly lane: string; readonly sequence: number; readonly position: number }

function lanes(knowledge: Knowledge, held: readonly NewLetter[], known: readonly Known[]): LaneWrite[] {
  const heads: Known[] = [
    ...held.map(({ lane, sequence, event }) => ({ lane, sequence, position: event.position })),
    ...known,
  ]
  return heads
    .filter(() => knowledge.oneIn(3))
    .slice(0, 3)
    .map(({ lane, sequence, position }): LaneWrite => {
      const done = knowledge.oneIn(2) ? knowledge.below(5) : undefined
      if (knowledge.oneIn(4)) return { lane, hold: undefined, done }
      const status = knowledge.pick(['parked', 'parked', 'retrying', 'waiting'] as const)
      const hold: HeldLane = {
        lane,
        status,
        since: knowledge.time++,
        done,
        head: sequence,
        headPosition: position,
        dueAt: knowledge.pick([undefined, 1_000]),
        tries: knowledge.pick([undefined, 0, 2]),
        breaker: knowledge.pick([undefined, undefined, 'mail']),
        redrive: knowledge.maybe([undefined, ...knowledge.redrives]),
      }
      return { lane, hold, done }
    })
}

function changesOf(knowledge: Knowledge, known: readonly Known[]): LetterChange[] {
  return known
    .filter(() => knowledge.oneIn(4))
    .slice(0, 3)
    .map(({ position }): LetterChange => {
      const change = knowledge.pick(['resolved', 'discarded', 'failed', 'status'] as const)
      switch (change) {
        case 'resolved':
          return knowledge.oneIn(2)
            ? { change, position, by: 'engine' }
            : { change, position, by: 'ann', reason: 'by hand' }
        case 'discarded':
          return { change, position, ending: { by: 'ann', reason: 'twice' } }
        case 'failed':
          return { change, position, status: knowledge.pick(['parked', 'retrying']), failure: knowledge.failure() }
        case 'status':
          return { change, position, status: knowledge.pick(['retrying', 'waiting', 'queued']) }
        default:
          return change satisfies never
      }
    })
}

function progress(knowledge: Knowledge, known: readonly Known[]): RedriveProgress[] {
  const redrive = knowledge.maybe(knowledge.redrives)
  if (!redrive) return []
  // From an end there is no way back: another redrive may have the lane.
  return known
    .filter(() => knowledge.oneIn(3))
    .slice(0, 2)
    .map(({ lane }) => {
      return {
        redrive,
        lane,
        letters: knowledge.below(3),
        state: knowledge.pick(['done', 'failed', 'passed'] as const),
      }
    })
}

import { checkDeed, withCounts } from '../../audit/audit.ts'
import { isActedOn } from '../../redrive/acts.ts'
import { type AskOutcome, noLanes, type Redrive, type RedriveRequest, type RedriveTask } from '../../redrive/redrive.ts'
import type { RedriveStore } from '../../redrive/redrive-store.ts'
import { type FrozenSet, freeze, type SelectedHead, selectedOf } from '../../redrive/selected.ts'
import { writeDeed } from './audit.ts'
import type { Connection } from './connection.ts'
import { matches } from './letter-filter.ts'
import { extentOf, revisionOf } from './letters.ts'
import { subscribedOf } from './partitions.ts'
import { advance, end, findKept, overIn } from './redrive-stages.ts'
import type { KeptRedrive, Lane, State, Subscribed } from './state.ts'
import { after, Blocked, type Step, type Tx } from './transaction.ts'

export function memoryRedrives(connection: Connection): RedriveStore {
  const { server } = connection
  return {
    select: ({ subscription, ...selection }) =>
      connection.query('redrives.select', () =>
        selectedOf(headsOf(server.state, subscribedOf(server.state, subscription), { subscription, ...selection })),
      ),
    newest: (subscription) =>
      connection.query(
        'redrives.newest',
        () => server.state.subscriptions.get(subscription)?.redrives.at(-1)?.number ?? 0,
      ),
    ask: async (request) => {
      const { by, act, subscription, reason } = request
      checkDeed({ by, act, target: subscription, reason })
      const asked = await connection.transact('redrives.ask', (tx) => ask(tx, request))
      if (asked.outcome === 'asked') connection.wake('release')
      return asked
    },
    due: (subscription, partition, limit) =>
      connection.query('redrives.due', () => dueOf(server.state, subscription, partition, limit), [
        subscription,
        partition,
      ]),
    advance: async (subscription) => {
      const isOver = await connection.query('redrives.over', () => overOf(subscription).length > 0)
      if (!isOver) return
      await connection.telling(
        'release',
        connection.transact('redrives.advance', (tx) => advanceAll(tx, subscription)),
      )
    },
    cancel: async (id, deed) => {
      checkDeed(deed)
      return connection.transact('redrives.cancel', (tx) => {
        const [subscription = '', kept] = findKept(server.state, id) ?? []
        if (kept?.redrive.status !== 'running') {
          server.rollback(tx)
          return false
        }
        return after(lockRedrives(tx, subscription), () => {
          if (kept.redrive.status !== 'running') {
            server.rollback(tx)
            return false
          }
          const pendingBefore = kept.lanes.filter(({ state }) => state === 'pending').length
          tx.writes.push(() => end(kept, 'cancelled', deed.reason, deed.at))
          return after(writeDeed(server, tx, withCounts(deed, { pendingBefore, pendingAfter: 0 })), () => true)
        })
      })
    },
    find: (id) =>
      connection.query('redrives.find', () => {
        const [subscription, kept] = findKept(server.state, id) ?? []
        return kept && toRedrive(subscription as string, kept)
      }),
    list: ({ subscription, limit }) =>
      connection.query('redrives.list', () =>
        [...server.state.subscriptions]
          .filter(([name]) => subscription === undefined || name === subscription)
          .flatMap(([name, { redrives }]) => redrives.map((kept) => ({ name, kept })))
          .toSorted((a, b) => b.kept.number - a.kept.number)
          .slice(0, limit)
          .map(({ name, kept }) => toRedrive(name, kept)),
      ),
    lanes: (id, state, position, limit) =>
      connection.query('redrives.lanes', () => {
        const [, kept] = findKept(server.state, id) ?? []
        const lanes = kept?.lanes.filter(
          (one) => one.ordinal > position && (state === undefined || one.state === state),
        )
        return lanes?.slice(0, limit) ?? []
      }),
    purge: async (subscription, endedBefore, most) => {
      const gone = await connection.query('redrives.purgeLanes', () =>
        purgeLanes(server.state, subscription, endedBefore, most),
      )
      await connection.query('redrives.purge', () => {
        const subscribed = server.state.subscriptions.get(subscription)
        if (!subscribed) return
        const old = new Set(oldIn(subscribed, endedBefore))
        subscribed.redrives = subscribed.redrives.filter((kept) => !old.has(kept) || kept.lanes.length > 0)
      })
      return gone
    },
  }

  function overOf(subscription: string): readonly KeptRedrive[] {
    const subscribed = server.state.subscriptions.get(subscription)
    return subscribed ? overIn(subscribed) : []
  }

  function lockRedrives(tx: Tx, subscription: string): Step<void> {
    const other = server.lock(tx, [`redrives ${subscription}`])
    return other ? new Blocked(other, () => lockRedrives(tx, subscription)) : undefined
  }

  /** The owners of all partitions come here together; the second finds it done. */
  function advanceAll(tx: Tx, subscription: string): Step<void> {
    return after(lockRedrives(tx, subscription), () => {
      const now = server.clock.now()
      tx.writes.push(() => {
        for (const kept of overOf(subscription)) advance(kept, now)
        server.tell('release', tx.session)
      })
    })
  }

  /** One at a time: the second request sees what the first one froze. */
  function ask(tx: Tx, request: RedriveRequest): Step<AskOutcome> {
    const subscribed = subscribedOf(server.state, request.subscription)
    const other = server.lock(tx, ['redrive'])
    if (other) return new Blocked(other, () => ask(tx, request))
    const set = freeze(headsOf(server.state, subscribed, request), request)
    if (set.outcome !== 'frozen') return refuse(tx, set)
    const { by, act, subscription, reason, at, id } = request
    const kept = keptOf(server.nextRedrive(), set, request)
    tx.writes.push(() => {
      subscribed.redrives.push(kept)
      server.tell('release', tx.session)
    })
    const details = { redrive: id, ...set.details }
    const asked: AskOutcome = { outcome: 'asked', redrive: toRedrive(subscription, kept), busy: set.busy }
    return after(writeDeed(server, tx, { by, act, target: subscription, reason, at, details }), () => asked)
  }

  function refuse(tx: Tx, outcome: AskOutcome): AskOutcome {
    server.rollback(tx)
    return outcome
  }
}

/** The heads of the selected lanes, in order. */
function headsOf(
  state: State,
  subscribed: Subscribed,
  {
    subscription,
    act,
    filter,
    after: known,
    through,
  }: Pick<RedriveRequest, 'subscription' | 'act' | 'filter' | 'after' | 'through'>,
): readonly SelectedHead[] {
  const { lane, ...rest } = filter
  const heads = [...subscribed.lanes.values()].filter((one) => {
    const { hold, partition } = one
    if (!hold || (lane !== undefined && one.lane !== lane) || !isActedOn(act, hold)) return false
    const letter = subscribed.partitions[partition]?.letters.get(hold.headPosition)
    return letter !== undefined && matches(letter, rest)
  })
  const busy = new Set(
    subscribed.redrives.flatMap(({ number, lanes }) => {
      const isLater = number > (known ?? Number.POSITIVE_INFINITY)
      return lanes.flatMap((one) => (isLater || one.state === 'pending' || one.state === 'running' ? [one.lane] : []))
    }),
  )
  return heads
    .map((one) => ({
      ...headOf(subscribed, one, busy.has(one.lane)),
      ...(through !== undefined && extentOf(state, subscription, one.lane, through)),
    }))
    .toSorted((a, b) => a.position - b.position || a.partition - b.partition)
}

function headOf(subscribed: Subscribed, { lane, partition, hold }: Lane, isBusy: boolean): SelectedHead {
  const position = hold?.headPosition ?? 0
  const letter = subscribed.partitions[partition]?.letters.get(position)
  const revision = (letter && revisionOf(subscribed, letter)?.number) ?? 0
  return { lane, partition, position, attempts: letter?.attemptsTotal ?? 0, revision, isBusy }
}

function keptOf(number: number, { lanes, spread, admitted }: FrozenSet, request: RedriveRequest): KeptRedrive {
  const { id, act, filter, by, reason, at, rate, stages, maxFailures } = request
  return {
    number,
    redrive: {
      id,
      act,
      filter: { ...filter },
      by,
      reason,
      at,
      rate,
      stages: [...stages],
      maxFailures,
      lanes: lanes.length,
      spread,
      admitted,
      status: 'running',
      endedAt: undefined,
      endedReason: undefined,
      isWhole: request.through !== undefined,
    },
    lanes: lanes.map(({ lane, partition, position, until }, i) => ({
      redrive: id,
      ordinal: i + 1,
      partition,
      lane,
      position,
      until,
      state: 'pending',
      letters: 0,
    })),
  }
}

/** One redrive after another; the limit is for each. */
function dueOf({ subscriptions }: State, subscription: string, partition: number, limit: number): RedriveTask[] {
  const redrives = subscriptions.get(subscription)?.redrives ?? []
  return redrives.flatMap(({ redrive, lanes }) => {
    const { id, status, admitted, act, by, reason, rate, spread } = redrive
    if (status !== 'running') return []
    return lanes
      .filter((one) => one.partition === partition && one.state === 'pending' && one.ordinal <= admitted)
      .slice(0, limit)
      .map(({ lane, position, until }) => {
        const share = rate === undefined ? undefined : rate / spread
        return { redrive: id, lane, position, until, act, by, reason, rate: share }
      })
  })
}

/** A lane that was running when the redrive was cancelled must still record its end. */
function oldIn({ redrives }: Subscribed, endedBefore: number): readonly KeptRedrive[] {
  return redrives.filter(({ redrive, lanes }) => {
    const hasEnded = redrive.status !== 'running' && (redrive.endedAt ?? endedBefore) < endedBefore
    return hasEnded && !lanes.some(({ state }) => state === 'running')
  })
}

function purgeLanes({ subscriptions }: State, subscription: string, endedBefore: number, most: number): number {
  const subscribed = subscriptions.get(subscription)
  let left = most
  for (const kept of subscribed ? oldIn(subscribed, endedBefore) : []) {
    const gone = Math.min(left, kept.lanes.length)
    kept.lanes = kept.lanes.slice(gone)
    left -= gone
  }
  return most - left
}

function toRedrive(subscription: string, { redrive, lanes: all }: KeptRedrive): Redrive {
  const { spread: _spread, ...own } = redrive
  const byState = noLanes()
  let letters = 0
  for (const lane of all) {
    byState[lane.state]++
    letters += lane.letters
  }
  return { ...own, subscription, byState, letters }
}

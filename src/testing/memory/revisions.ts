import type { Deed } from '../../audit/audit.ts'
import type { LetterName, LetterStore, ReviseOutcome } from '../../dead-letter/letter-store.ts'
import { checkRevision } from '../../dead-letter/revision.ts'
import { writeDeed } from './audit.ts'
import { partitionLock } from './commit.ts'
import type { Connection } from './connection.ts'
import { lettersOf, type KeptRevision, type Letter, type Partition, type State, type Subscribed } from './state.ts'
import { after, Blocked, type Step, type Tx } from './transaction.ts'

type Change = (known: readonly KeptRevision[]) => { readonly number: number; readonly all: readonly KeptRevision[] }

export function memoryRevisions(connection: Connection): Pick<LetterStore, 'revise' | 'unrevise' | 'revisions'> {
  const { server } = connection
  return {
    revise: async (letter, body, deed) => {
      checkRevision(body)
      const { by, reason, at } = deed
      return change('letters.revise', [letter, body], deed, (known) => {
        const number = (known.at(-1)?.number ?? 0) + 1
        return { number, all: [...known, { number, body, by, reason, at, isTakenBack: false }] }
      })
    },
    unrevise: (letter, deed) =>
      change('letters.unrevise', [letter], deed, (known) => {
        const number = known.findLast(({ isTakenBack }) => !isTakenBack)?.number ?? 0
        return { number, all: known.map((one) => (one.number === number ? { ...one, isTakenBack: true } : one)) }
      }),
    revisions: ({ subscription, position, partition }) =>
      connection.query('letters.revisions', () => {
        const subscribed = server.state.subscriptions.get(subscription)
        const partitions = subscribed?.partitions.filter(
          (row) => partition === undefined || row.partition === partition,
        )
        return (partitions ?? []).flatMap((row) => subscribed?.revisions.get(`${position}/${row.partition}`) ?? [])
      }),
  }

  /** A letter that is not being tried stays so until the transaction ends. */
  function change(
    what: string,
    about: readonly [LetterName, string?],
    deed: Deed,
    make: Change,
  ): Promise<ReviseOutcome> {
    const [letter] = about
    const work = (tx: Tx) =>
      after(attempt(tx), (outcome) => {
        if (outcome.outcome !== 'revised') server.rollback(tx)
        return outcome
      })
    return connection.transact(what, work, () => about)

    function attempt(tx: Tx): Step<ReviseOutcome> {
      const { subscription } = letter
      const found = findLetter(server.state, letter)
      if (!found) return { outcome: 'unknown' }
      const other = server.lock(tx, ['redrive', partitionLock(subscription, found.partition)])
      if (other) return new Blocked(other, () => attempt(tx))
      const subscribed = server.state.subscriptions.get(subscription) as Subscribed
      if (found.endedAt !== undefined) return { outcome: 'ended' }
      if (isBusy(subscribed, found.lane)) return { outcome: 'busy' }
      const place = `${found.event.position}/${found.partition}`
      const { number, all } = make(subscribed.revisions.get(place) ?? [])
      if (number === 0) return { outcome: 'unrevised' }
      tx.writes.push(() => {
        subscribed.revisions.set(place, all)
        // The owner may still have the old letter in memory: its commit is then refused. A handler has none in memory.
        const row = subscribed.partitions[found.partition] as Partition
        const { checkpoint } = row
        if (subscribed.kind !== 'handler') row.checkpoint = { ...checkpoint, commits: checkpoint.commits + 1 }
      })
      return after(writeDeed(server, tx, deed), () => ({ outcome: 'revised', number }))
    }
  }
}

function findLetter(state: State, { subscription, position, partition }: LetterName): Letter | undefined {
  return lettersOf(state, subscription).find(
    (letter) => letter.event.position === position && (partition === undefined || letter.partition === partition),
  )
}

/** About to be tried: it is in a redrive, or is neither parked nor waiting for a breaker. */
function isBusy({ lanes, redrives }: Subscribed, lane: string): boolean {
  const hold = lanes.get(lane)?.hold
  const isAtRest = hold?.status === 'parked' || (hold?.status === 'waiting' && hold.breaker !== undefined)
  if (!isAtRest) return true
  return redrives.some((kept) =>
    kept.lanes.some((one) => one.lane === lane && (one.state === 'pending' || one.state === 'running')),
  )
}

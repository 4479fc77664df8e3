import type { LetterPlace, LetterStore } from '../../dead-letter/letter-store.ts'
import { writeDeed } from './audit.ts'
import type { Connection } from './connection.ts'
import { seenAt } from './incidents.ts'
import { lettersOf, type Letter, type State, type Subscribed } from './state.ts'
import { after } from './transaction.ts'

export function memoryPurge(connection: Connection): Pick<LetterStore, 'purgeable' | 'listPurgeable' | 'purge'> {
  const { server } = connection
  return {
    purgeable: (subscription, endedBefore) =>
      connection.query('letters.purgeable', () => purgeable(server.state, subscription, endedBefore).length),
    listPurgeable: (subscription, endedBefore, last = { position: 0, partition: 0 }, limit) =>
      connection.query('letters.listPurgeable', () =>
        purgeable(server.state, subscription, endedBefore)
          .map(({ partition, event: { position } }) => ({ partition, position }))
          .filter((place) => order(place, last) > 0)
          .toSorted(order)
          .slice(0, limit),
      ),
    purge: (subscription, endedBefore, most, deed) =>
      connection.transact('letters.purge', (tx) => {
        const over = purgeable(server.state, subscription, endedBefore)
        // Letters that another process is purging are skipped.
        const free = over.filter(({ event, partition }) => {
          return server.holderOf(`letter ${event.position}/${partition} ${subscription}`) === undefined
        })
        const gone = free.slice(0, most)
        if (gone.length === 0) {
          server.rollback(tx)
          return 0
        }
        server.lock(
          tx,
          gone.map(({ event, partition }) => `letter ${event.position}/${partition} ${subscription}`),
        )
        tx.writes.push((state) => remove(state, subscription, gone))
        const written = { ...deed, details: { ...deed.details, letters: gone.length } }
        return after(writeDeed(server, tx, written), () => gone.length)
      }),
  }
}

/** Letters that the engine resolved without an edit. */
function purgeable(state: State, subscription: string, endedBefore: number): readonly Letter[] {
  const revisions = state.subscriptions.get(subscription)?.revisions
  return lettersOf(state, subscription).filter(
    ({ status, endedAt, endedReason, event, partition }) =>
      status === 'resolved' &&
      endedAt !== undefined &&
      endedAt < endedBefore &&
      endedReason === undefined &&
      !revisions?.has(`${event.position}/${partition}`),
  )
}

function order(a: LetterPlace, b: LetterPlace): number {
  return a.position - b.position || a.partition - b.partition
}

function remove(state: State, subscription: string, gone: readonly Letter[]): void {
  const subscribed = state.subscriptions.get(subscription)
  if (!subscribed) return
  for (const letter of gone) {
    const { letters } = subscribed.partitions[letter.partition] ?? {}
    if (letters?.delete(letter.event.position)) remember(subscribed, letter)
  }
}

function remember({ incidents }: Subscribed, letter: Letter): void {
  const { failure, heldAt, endedAt = 0 } = letter
  if (!failure) return
  const { fingerprint } = failure
  const known = incidents.get(fingerprint)
  incidents.set(fingerprint, {
    fingerprint,
    letters: (known?.letters ?? 0) + 1,
    firstSeen: Math.min(known?.firstSeen ?? heldAt, heldAt),
    lastSeen: Math.max(known?.lastSeen ?? 0, seenAt(letter)),
    lastEnded: Math.max(known?.lastEnded ?? 0, endedAt),
  })
}

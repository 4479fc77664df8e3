import type { Store } from 'holdfast'
import { slotOf } from '../../src/source/share.ts'
import { isMarked } from '../../src/engine/handler/window.ts'
import type { Open } from './judge.ts'
import type { Written } from './writer.ts'

/** What a store says of the events that were written: which of them a subscription is done with, and which it holds. */
export async function outcomesIn(
  store: Store,
  subscription: string,
  written: readonly Pick<Written, 'id' | 'key' | 'position'>[],
): Promise<{ readonly done: readonly string[]; readonly open: readonly Open[]; readonly pending: number }> {
  // In this order: what is resolved between the two is done.
  const partitions = await store.subscriptions.partitions(subscription)
  const open = await openLetters(store, subscription)
  const held = new Set(open.map(({ id }) => id))
  const passed = written.filter(({ key, position }) => {
    const state = partitions[slotOf(key) % partitions.length]
    return state !== undefined && (position <= state.checkpoint.position || isMarked(state.marks, position))
  })
  const isWaiting = ({ status }: Open) => status === 'retrying' || status === 'waiting'
  return {
    done: passed.flatMap(({ id }) => (held.has(id) ? [] : [id])),
    open,
    pending: written.length - passed.length + open.filter(isWaiting).length,
  }
}

const lettersPerPage = 1_000

async function openLetters(store: Store, subscription: string): Promise<Open[]> {
  const open: Open[] = []
  for (let after = 0; ; ) {
    const letters = await store.letters.list({ subscription, after, limit: lettersPerPage })
    for (const { endedAt, event, status, attempts } of letters) {
      if (endedAt === undefined) open.push({ id: event.id, status, rule: attempts.at(-1)?.failure.rule })
    }
    const last = letters.at(-1)
    if (!last || letters.length < lettersPerPage) return open
    after = last.event.position
  }
}

import type { RedriveStore } from '../redrive/redrive-store.ts'

interface Moment {
  readonly newest: Promise<number>
  acts: number
}

const moments = new WeakMap<RedriveStore, Map<string, Moment>>()

/**
 * Runs an act with the number of the newest redrive at the time of the call, see `RedriveStore.newest`. Overlapping acts of this process share
 * the number that the first one read. Otherwise the read of the second act could be slow (a new connection): the first act could redrive the
 * lanes, fail and park them again before it, and the second would treat those lanes as unchanged.
 */
export async function atMoment<T>(
  redrives: RedriveStore,
  subscription: string,
  act: (newest: number) => Promise<T>,
): Promise<T> {
  const known = moments.get(redrives) ?? new Map<string, Moment>()
  moments.set(redrives, known)
  const moment = known.get(subscription) ?? { newest: redrives.newest(subscription), acts: 0 }
  known.set(subscription, moment)
  moment.acts++
  try {
    return await act(await moment.newest)
  } finally {
    moment.acts--
    if (moment.acts === 0) known.delete(subscription)
  }
}

import type { RedriveStore } from '../redrive/redrive-store.ts'

interface Moment {
  readonly newest: Promise<number>
  acts: number
}

const moments = new WeakMap<RedriveStore, Map<string, Moment>>()

/**
 * Runs an act with the number of the newest redrive when it was called, see `RedriveStore.newest`. Acts that overlap in this process share
 * the number that the first of them read: the read of a second one may take longer (a new connection) than the first takes to redrive
 * its lanes, to fail and to park them again, and would count that as something that was there before.
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

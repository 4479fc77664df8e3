import { setTimeout } from 'node:timers/promises'
import { type Nemesis, pick } from '../scene.ts'

/** Longer than any lease of a cycle, with room for whoever takes over. */
const stoppedMs = 8_000
const fencedMs = 5_000

/** Kill -9, most of the time just after a commit, when the next page is at hand. */
export const kill: Nemesis = {
  name: 'kill',
  weight: 30,
  strike: async ({ fleet, random, tally }) => {
    const victim = pick(random, fleet.members)
    if (random.below(5) > 0)
      await fleet.reports.next(({ kind, member }) => kind === 'committed' && member === victim, 500)
    await setTimeout(random.below(40))
    await fleet.kill(victim)
    // At once, or when the others have got used to being fewer.
    if (random.below(4) === 0) await setTimeout(500)
    fleet.fill(victim)
    tally.add('kills')
  },
}

/** The process stands still until another has its partitions, and comes back with its page in its hands. */
export const stop: Nemesis = {
  name: 'stop',
  weight: 6,
  strike: async ({ fleet, random, tally }) => {
    const victim = pick(random, fleet.members)
    await fleet.reports.next(({ kind, member }) => kind === 'committed' && member === victim, 500)
    await setTimeout(random.below(20))
    victim.child.signal('SIGSTOP')
    try {
      await fleet.reports.next(({ kind, member }) => kind === 'claimed' && member !== victim, stoppedMs)
    } finally {
      victim.child.signal('SIGCONT')
    }
    tally.add('stops')
    await fleet.reports.next(({ kind, member }) => kind === 'fenced' && member === victim, fencedMs)
  },
}

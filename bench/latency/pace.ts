import { setTimeout } from 'node:timers/promises'

type Random = { below(limit: number): number }

const warmUpFactor = 10
const pauseMs = { least: 5, most: 30 }

/** One right after the other: what is measured are processes that have been at work for a while, not such that were just loaded. */
export function warmUpOf(events: number): number {
  return warmUpFactor * events
}

/** Between two events that are measured, so that each finds an idle machine. */
export async function pause(random: Random): Promise<void> {
  await setTimeout(pauseMs.least + random.below(pauseMs.most - pauseMs.least + 1))
}

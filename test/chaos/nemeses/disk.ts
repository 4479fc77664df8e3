import { setTimeout } from 'node:timers/promises'
import type { Nemesis } from '../scene.ts'

const biteMs = 10_000
const diskFullCode = '53100'

/** The file system of all tables is full, and then there is room again. */
export const fillDisk: Nemesis = {
  name: 'disk full',
  weight: 3,
  missing: ({ disk }) => ('missing' in disk ? disk.missing : undefined),
  strike: async ({ ground: { disk }, fleet, writers, random, tally }) => {
    if ('missing' in disk) return
    const isBite = (report: { kind: string }) => 'code' in report && report.code === diskFullCode
    const bites = [fleet.reports.next(isBite, biteMs), writers.reports.next(isBite, biteMs)]
    await disk.fill()
    try {
      const bitten = await Promise.race(bites)
      if (bitten) tally.add('diskFull')
      await setTimeout(random.below(500))
    } finally {
      await disk.empty()
    }
  },
}

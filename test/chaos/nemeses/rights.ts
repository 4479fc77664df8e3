import { setTimeout } from 'node:timers/promises'
import { roles } from '../ground.ts'
import { type Nemesis, pick } from '../scene.ts'

const biteMs = 10_000
const deniedCode = '42501'

/** The engines may not write letters, or not read them either, just when there is one to write. */
export const revoke: Nemesis = {
  name: 'revoke',
  weight: 4,
  strike: async ({ admin, fleet, writers, random, tally }) => {
    const right = `${pick(random, ['INSERT', 'SELECT, INSERT'])} ON holdfast.holdfast_letters`
    const bite = fleet.reports.next((report) => report.kind === 'store-failed' && report.code === deniedCode, biteMs)
    await admin.query(`REVOKE ${right} FROM ${roles.engine}`)
    try {
      writers.poison()
      if (await bite) tally.add('revokes')
      await setTimeout(random.below(300))
    } finally {
      await admin.query(`GRANT ${right} TO ${roles.engine}`)
    }
  },
}

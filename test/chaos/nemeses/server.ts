import { setTimeout } from 'node:timers/promises'
import { roles } from '../ground.ts'
import { type Nemesis, pick } from '../scene.ts'

const endSession = ['pg_terminate_backend', 'terminated'] as const
const cancel = ['pg_cancel_backend', 'cancelled'] as const

/** The server ends sessions, or what they are doing: of everybody, of the engines, or a few. */
export const terminate: Nemesis = {
  name: 'terminate',
  weight: 15,
  strike: async ({ admin, database, random, tally }) => {
    const whose = pick(random, [[roles.engine, roles.writer], [roles.engine], [roles.engine]])
    const share = pick(random, [0.3, 0.6, 1])
    const [end, counter] = random.below(4) === 0 ? cancel : endSession
    // Often enough to meet sessions that were only just made.
    for (let times = 1 + random.below(3); times > 0; times--) {
      const ended = await admin.query(
        `SELECT ${end}(pid) FROM pg_stat_activity
          WHERE datname = $1 AND usename = ANY ($2) AND pid % 10 < $3`,
        [database, whose, share * 10],
      )
      tally.add(counter, ended.length)
      await setTimeout(random.below(100))
    }
  },
}

export const restart: Nemesis = {
  name: 'restart',
  weight: 4,
  strike: async ({ ground: { server }, random, tally }) => {
    await server.stop(pick(random, ['fast', 'immediate', 'kill']))
    await setTimeout(random.below(300))
    await server.start()
    tally.add('restarts')
  },
}

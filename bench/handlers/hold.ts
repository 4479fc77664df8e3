import { createEngine, definePolicy, failure, park } from 'holdfast'
import { answer } from '../child.ts'
import { singleKey } from '../projection/events.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import { countsOf } from './counts.ts'
import { notifying, quietLogger } from './notify.ts'

export interface HoldTask {
  readonly place: Place
  /** How many events of keys of their own the log begins with. */
  readonly singles: number
  /** Whether they fail, so that each parks its lane; otherwise they are handled like all others. */
  readonly fail: boolean
}

/**
 * Brings a log to where all its single events have their outcome. The engine does it itself, so that what it leaves is what a bad
 * release leaves; some of what follows is handled by then.
 */
async function hold({ place, singles, fail }: HoldTask): Promise<number> {
  await using store = await openStore(place)
  const { promise: all, resolve } = Promise.withResolvers<void>()
  const handler = notifying({
    concurrency: 64,
    failure: definePolicy({ transient: park, outage: false }),
    act: ({ key }) => {
      if (fail && key.startsWith(singleKey)) throw failure.transient('no answer')
    },
  })
  await using engine = createEngine({ store, subscriptions: [handler], logger: quietLogger })
  engine.on('page.committed', ({ position }) => position >= singles && resolve())
  await engine.start()
  await all
  await engine.stop()
  const { held } = await countsOf(engine)
  if (held !== (fail ? singles : 0)) throw new Error(`${held} events are held, of ${singles}`)
  return held
}

if (import.meta.main) await answer(hold)

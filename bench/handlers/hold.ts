import { setTimeout } from 'node:timers/promises'
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

const patienceMs = 100

/**
 * Brings a log to where all its single events have their outcome. The engine does it itself, so that what it leaves is what a bad
 * release leaves. A few of the events behind them are handled as well.
 */
async function hold({ place, singles, fail }: HoldTask): Promise<number> {
  await using store = await openStore(place)
  const { promise: all, resolve } = Promise.withResolvers<void>()
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const handler = notifying({
    concurrency: 64,
    failure: definePolicy({ transient: park, outage: false }),
    act: ({ key }) => {
      if (!key.startsWith(singleKey)) return gate
      if (fail) throw failure.transient('no answer')
      return undefined
    },
  })
  await using engine = createEngine({ store, subscriptions: [handler], logger: quietLogger })
  engine.on('page.committed', ({ position }) => position >= singles && resolve())
  await engine.start()
  await all
  const stopped = engine.stop()
  // By then nothing more is begun.
  await setTimeout(patienceMs)
  open()
  await stopped
  const { held } = await countsOf(engine)
  if (held !== (fail ? singles : 0)) throw new Error(`${held} events are held, of ${singles}`)
  return held
}

if (import.meta.main) await answer(hold)

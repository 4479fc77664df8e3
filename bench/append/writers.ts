import { createLog } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { answer } from '../child.ts'
import { bankEvents, type Movement } from '../projection/bank.ts'
import { makeEvents } from '../projection/events.ts'
import { createNaiveLog } from './naive.ts'

export interface AppendTask {
  readonly url: string
  readonly writers: number
  /** Of each side, in each round. */
  readonly events: number
  readonly keys: number
  readonly rounds: number
}

/** Appends per second. */
export interface AppendRound {
  readonly ours: number
  readonly naive: number
}

export interface Draft {
  readonly key: string
  readonly type: 'FundsCredited' | 'FundsDebited'
  readonly data: Movement
}

type Append = (draft: Draft) => Promise<unknown>

async function measure({ url, writers, events, keys, rounds }: AppendTask): Promise<AppendRound[]> {
  // The store's own number of connections when nothing is set, or one for every writer.
  const connections = Math.max(10, writers)
  await using store = await createPostgresStore({ connection: url, connections })
  await using naiveLog = await createNaiveLog(url, connections)
  const log = createLog({ store, events: bankEvents })
  const ours: Append = ({ key, type, data }) => log.append(key, [{ type, data }])
  const naive: Append = (draft) => naiveLog.append(draft)

  const drafts = Array.from(makeEvents({ events, keys }), ({ key, type, data }): Draft => {
    return { key, type, data: JSON.parse(data) as Movement }
  })
  const found: AppendRound[] = []
  // Round 0 opens the connections, prepares the statements and warms the code up.
  for (let round = 0; round <= rounds; round++) {
    const rates = { ours: 0, naive: 0 }
    // The first side affects the machine for the second, so they alternate.
    const sides = [['ours', ours] as const, ['naive', naive] as const]
    for (const [name, append] of round % 2 === 0 ? sides : sides.toReversed())
      rates[name] = await perSecond(drafts, writers, append)
    if (round > 0) found.push(rates)
  }
  await naiveLog.mustHold(events * (rounds + 1))
  return found
}

async function perSecond(drafts: readonly Draft[], writers: number, append: Append): Promise<number> {
  const queue = drafts.values()
  const write = async () => {
    for (const draft of queue) await append(draft)
  }
  const begun = performance.now()
  await Promise.all(Array.from({ length: writers }, write))
  return (drafts.length * 1_000) / (performance.now() - begun)
}

if (import.meta.main) await answer(measure)

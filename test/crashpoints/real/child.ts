// A process that appends, projects and handles a few events, and ends when everything is done. Whoever starts it again after its death
// finds the rest done.
import { appendFileSync } from 'node:fs'
import { createEngine, createLog, defineHandler } from 'holdfast'
import { ledgerEvents, ledgerProjection } from '../../crash/ledger.ts'
import { openStore, type Place } from '../../handlers/place.ts'

export interface ChildSettings {
  readonly place: Place
  /** A file with a line for every effect. */
  readonly evidence: string
}

/** By key, what is posted; the second of `poor` can't be applied, and holds up the third. */
export const postings: Readonly<Record<string, readonly number[]>> = {
  poor: [10, -1_000, 5],
  rich: [100, -10, 3],
}

export const ledger = ledgerProjection('ledger')

export function teller(evidence: string) {
  return defineHandler('teller', {
    events: ledgerEvents,
    on: {
      Posted: ({ key, data: { n } }, { idempotencyKey }) =>
        appendFileSync(evidence, `${JSON.stringify({ handler: 'teller', key, n, idempotencyKey })}\n`),
    },
  })
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

if (import.meta.main) {
  const { place, evidence } = JSON.parse(process.argv[2] ?? '{}') as ChildSettings
  await using store = await openStore(place)
  const log = createLog({ store, events: ledgerEvents })
  for (const [key, amounts] of Object.entries(postings)) {
    const drafts = amounts.map((amount, i) => ({
      id: `${key}-${i + 1}`,
      type: 'Posted' as const,
      data: { n: i + 1, amount },
    }))
    await log.append(key, drafts)
  }
  const subscriptions = [ledger, teller(evidence)]
  await using engine = createEngine({ store, subscriptions, lease: '500ms', poll: '20ms', logger: silent })
  await engine.start()
  await engine.drain()
}

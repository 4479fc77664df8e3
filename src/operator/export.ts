import type { DeadLetter } from '../dead-letter/letter.ts'
import type { LetterQuery } from '../dead-letter/letter-store.ts'
import type { RecordedEvent } from '../event/event.ts'
import { checkOptions } from '../runtime/options.ts'
import { bodyFields } from './export-format.ts'
import { letterQuery } from '../dead-letter/query.ts'
import { listHeld } from './letters.ts'
import type { OperatorParts } from './parts.ts'

export interface ExportOptions {
  /** Which letters. Default of `limit`: all. Default of `status`: the held ones. */
  readonly query: LetterQuery
  /** Also export resolved and discarded letters. Default: false. */
  readonly all?: boolean
  /** The reason, for the audit: an export contains payloads. */
  readonly reason: string
  /** Also export the earlier events of the same keys, so that an import reproduces the failure. Default: false. */
  readonly history?: boolean
}

const perPage = 200
const pageLimits = { events: 1_000, bytes: 4_194_304 }

/** Letters in order of position. With `history`, each follows the events of its key that were not written yet. */
export async function* exportLetters(parts: OperatorParts, options: ExportOptions): AsyncGenerator<string> {
  checkOptions(options, 'exportLetters', ['query', 'reason', 'history', 'all'])
  const { history = false, all = false } = options
  const reason = parts.reasonOf(options.reason)
  const { limit: _, ...query } = letterQuery(options.query)
  const { subscription, after: from = 0, ...filter } = query
  await parts.partitionsOf(subscription)
  const details = { conditions: Object.keys(filter).join(' '), history, all }
  // Written before the first line is returned: an export without an audit entry must not be possible.
  const deed = parts.deed({ act: 'letters.export', target: subscription, reason, details })
  await parts.store.audit.record(deed)
  yield line({ holdfast: 'letters', version: 1, subscription, at: iso(deed.at) })
  const written = new Map<string, number>()
  let left = options.query.limit ?? Number.POSITIVE_INFINITY
  let after = from
  for (;;) {
    const most = Math.min(perPage, left)
    const wanted = { ...query, after, limit: most }
    const page = most === 0 ? [] : all ? await parts.store.letters.list(wanted) : await listHeld(parts.store, wanted)
    for (const letter of page) {
      if (history && letter.logged) yield* historyOf(parts, letter.event, written)
      yield line(await letterLine(parts, letter))
    }
    left -= page.length
    const last = page.at(-1)
    if (!last || page.length < most) return
    after = last.event.position
  }
}

async function* historyOf(
  { store }: OperatorParts,
  { key, version = 1 }: RecordedEvent,
  written: Map<string, number>,
): AsyncGenerator<string> {
  let after = written.get(key) ?? 0
  while (after < version - 1) {
    const page = await store.log.readKey(key, after, pageLimits)
    for (const event of page) {
      if (event.version === undefined || event.version >= version) break
      yield line({ kind: 'event', event: eventFields(event) })
      after = event.version
    }
    if (page.length === 0 || (page.at(-1)?.version ?? 0) >= version) break
  }
  written.set(key, version)
}

async function letterLine({ store }: OperatorParts, letter: DeadLetter): Promise<object> {
  const { subscription, partition, lane, sequence, status, logged, event, attempts, attemptsTotal, revision } = letter
  const { heldAt, endedAt, endedBy, endedReason } = letter
  const name = { subscription, partition, position: event.position }
  const revisions = revision || status !== 'queued' ? await store.letters.revisions(name) : []
  return {
    kind: 'letter',
    subscription,
    partition,
    lane,
    sequence,
    status,
    logged,
    heldAt: iso(heldAt),
    endedAt: endedAt === undefined ? undefined : iso(endedAt),
    endedBy,
    endedReason,
    attempts: attempts.map((attempt) => ({ ...attempt, at: iso(attempt.at) })),
    attemptsTotal,
    revisions: revisions.map((each) => ({ ...each, at: iso(each.at) })),
    event: eventFields(event),
  }
}

function eventFields({ body, ...event }: RecordedEvent): object {
  return { ...event, ...bodyFields(body) }
}

function iso(ms: number): string {
  return new Date(ms).toISOString()
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`
}

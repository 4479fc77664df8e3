import type { Store } from 'holdfast'
import type { ArchivePart } from '../../src/archive/archive.ts'

/**
 * Everything that a store has in the end, without what a death may change: times, epochs, owners, how often something was tried, and how
 * many numbers were burned between two positions. `isTimed`: and without letters that were held for a while.
 */
export async function stateOf(store: Store, isTimed = false): Promise<string[]> {
  return store.snapshot(async (moment) => {
    const parts: ArchivePart[] = []
    for await (const part of moment.archive()) parts.push(part)
    const positions = parts.flatMap((part) =>
      part.part === 'events' ? part.events.map(({ position }) => position) : [],
    )
    const rank = (position: number) => positions.filter((one) => one <= position).length
    const redrives = parts.flatMap((part) => (part.part === 'redrive' ? [part.redrive.id] : []))
    const lines = parts.flatMap((part) => linesOf(part, rank, (id) => redrives.indexOf(id))).map(withoutIds)
    const deeds = new Set(lines.filter((line) => line.startsWith('deed ')))
    const isPassing = (line: string) => isTimed && /^(letter .*"status":"resolved"|incident )/.test(line)
    // Who does something again because he does not know that he did it leaves two entries.
    return [...lines.filter((line) => !line.startsWith('deed ') && !isPassing(line)), ...[...deeds].toSorted()]
  })
}

/** Where two states part, for a person. */
export function differenceOf(expected: readonly string[], actual: readonly string[]): string[] {
  const [wanted, found] = [new Set(expected), new Set(actual)]
  const missing = expected.filter((line) => !found.has(line)).map((line) => `missing: ${line}`)
  const extra = actual.filter((line) => !wanted.has(line)).map((line) => `instead: ${line}`)
  return [...missing, ...extra]
}

type Rank = (position: number) => number

function linesOf(part: ArchivePart, rank: Rank, redriveOf: (id: string) => number): string[] {
  switch (part.part) {
    case 'subscription': {
      const { name, kind, partitions, version, generationOf, retiredAt } = part.subscription
      return [
        told('subscription', name, { kind, version, generationOf, isRetired: retiredAt !== undefined }),
        ...partitions.map(({ partition, checkpoint, pause, marks, trials }) =>
          told('partition', `${name}/${partition}`, {
            position: rank(checkpoint.position),
            counts: checkpoint.counts,
            pause: pause?.reason,
            marks: marks.map(([from, to]) => [rank(from), rank(to)]),
            trials: trials.map(({ position }) => rank(position)),
          }),
        ),
      ]
    }
    case 'events':
      // Not by position: whoever has to append again comes later than others.
      return part.events.map(({ id, key, version, type, body }) =>
        told('event', `${key}/${version}`, { id, type, body: String(body) }),
      )
    case 'rows':
      return part.rows.map(({ key, version, json, columns }) =>
        told('row', `${part.subscription} ${key}`, { version, json, columns }),
      )
    case 'lanes':
      return part.lanes
        .filter(({ hold, done }) => hold !== undefined || done !== undefined)
        .map(({ lane, partition, done, hold }) =>
          told('lane', `${part.subscription} ${laneOf(lane, rank)}`, {
            partition,
            done,
            hold: hold && { status: hold.status, head: rank(hold.headPosition), breaker: hold.breaker },
          }),
        )
    case 'letters':
      return part.letters.map(({ partition, event, lane, status, attempts, endedBy, endedReason, revision }) =>
        told('letter', `${part.subscription} ${partition} ${rank(event.position)}`, {
          id: event.id,
          lane: laneOf(lane, rank),
          status,
          // One that a process died over may have been the only one that failed.
          failure: status === 'resolved' ? undefined : attempts.at(-1)?.failure.class,
          endedBy,
          endedReason,
          revision: revision?.body,
        }),
      )
    case 'revisions':
      return part.revisions.map(({ partition, position, number, body, by, isTakenBack }) =>
        told('revision', `${part.subscription} ${partition} ${rank(position)} ${number}`, { body, by, isTakenBack }),
      )
    case 'incidents':
      return part.incidents.map(({ fingerprint, letters }) =>
        told('incident', `${part.subscription} ${fingerprint}`, { letters }),
      )
    case 'redrive': {
      const { id, act, filter, by, reason, status, lanes, stages, maxFailures } = part.redrive
      return [told('redrive', String(redriveOf(id)), { act, filter, by, reason, status, lanes, stages, maxFailures })]
    }
    case 'redrive-lanes':
      return part.lanes.map(({ redrive, lane, position, state, letters }) =>
        told('redrive-lane', `${redriveOf(redrive)} ${laneOf(lane, rank)}`, {
          position: rank(position),
          state,
          letters,
        }),
      )
    case 'inbox':
      return part.marks.map(({ key, result }) => told('mark', `${part.subscription} ${key}`, { result }))
    case 'breakers':
      return part.breakers.map(({ name, state }) => told('breaker', name, { state: state.state }))
    case 'audit':
      return part.entries.map(({ by, act, target, reason }) =>
        told('deed', act, { by, target: target.replace(/\d+$/, (position) => `#${rank(Number(position))}`), reason }),
      )
    default:
      return part satisfies never
  }
}

/** Without an order, the lane of an event is named by its position. */
function laneOf(lane: string, rank: Rank): string {
  return lane.replace(/#(\d+)$/, (_, position) => `#${rank(Number(position))}`)
}

/** Those that were made up have the time in them. */
function withoutIds(text: string): string {
  return text.replace(/[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}/g, 'made up')
}

function told(kind: string, name: string, about: object): string {
  return `${kind} ${name} ${JSON.stringify(about)}`
}

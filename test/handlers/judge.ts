import type { EffectLine, Line } from './evidence.ts'
import type { Written } from './writer.ts'

/** An event that is held at the end, and why. */
export interface Open {
  readonly id: string
  readonly status: string
  /** Which rule decided about the failure, if there was one. */
  readonly rule: string | undefined
}

export interface Verdict {
  readonly events: number
  /** How many effects were begun. */
  readonly effects: number
  /** Begun by a process that died before their end. */
  readonly cutOff: number
  /** Begun again after another process had begun them, and died or was not heard. */
  readonly repeated: number
  /** Of these, the ones that had come to their end before. */
  readonly repeatedAfterEnd: number
  /** Failed, and were tried again. */
  readonly retried: number
  /** Refused by the outside for good, and those behind them. */
  readonly parked: number
  readonly queued: number
  /** Never had their effect, and are not held either. */
  readonly lost: number
  /** Begun before the event before them in their lane had come to its end. */
  readonly inverted: number
  /** Begun again after the store had them as done. */
  readonly againAfterFinish: number
  readonly problems: readonly string[]
}

/** How an effect ended, and where in the order of all lines. */
interface Span {
  readonly begin: EffectLine
  readonly from: number
  to: number
  end: 'end' | 'failed' | 'cut off'
}

const mostProblems = 30

/**
 * Judges what the outside saw, with nothing but that, what was written and what is held at the end. The promise: each effect at
 * least once under one key of its own; the effects of a lane one after the other, in order; none again once the event is done.
 */
export function judge(lines: readonly Line[], written: readonly Written[], open: readonly Open[]): Verdict {
  const problems: string[] = []
  const problem = (what: string) => void (problems.length < mostProblems && problems.push(what))
  const spans = spansOf(lines, problem)
  const events = new Map(written.map((event) => [event.id, event]))
  const spansOfEvent = Map.groupBy(spans, ({ begin }) => begin.id)
  const finishedAt = firstFinishes(lines)

  let [repeated, repeatedAfterEnd, retried, againAfterFinish] = [0, 0, 0, 0]
  for (const [id, own] of spansOfEvent) {
    if (!events.has(id)) problem(`${id} had an effect, and was never written`)
    const keys = new Set(own.map(({ begin }) => begin.idempotencyKey))
    if (keys.size !== 1) problem(`${id} came under several keys: ${[...keys].join(', ')}`)
    for (const [i, { begin, from }] of own.entries()) {
      const before = own.slice(0, i).filter(({ begin: { process } }) => process !== begin.process)
      if (before.some(({ end }) => end !== 'failed')) repeated++
      if (before.some(({ end }) => end === 'end')) repeatedAfterEnd++
      if (own[i - 1]?.end === 'failed') retried++
      if (from <= (finishedAt.get(id) ?? Number.POSITIVE_INFINITY)) continue
      againAfterFinish++
      problem(`${id} was begun again by ${begin.process} although it was done`)
    }
  }
  const keysOfEvents = new Set(Array.from(spansOfEvent.values(), ([first]) => first?.begin.idempotencyKey))
  if (keysOfEvents.size !== spansOfEvent.size) problem('Two events came under one key')

  const held = new Map(open.map((one) => [one.id, one]))
  const lost = written.filter(({ id }) => !held.has(id) && !spansOfEvent.get(id)?.some(({ end }) => end === 'end'))
  for (const { id } of lost) problem(`${id} is lost: it had no effect, and is not held`)
  for (const { id, status, rule } of open) {
    if (!isHeldRightly(id, status, rule)) problem(`${id} is ${status}${rule ? ` by the rule ${rule}` : ''}`)
  }
  return {
    events: written.length,
    effects: spans.length,
    cutOff: spans.filter(({ end }) => end === 'cut off').length,
    repeated,
    repeatedAfterEnd,
    retried,
    parked: open.filter(({ status }) => status === 'parked').length,
    queued: open.filter(({ status }) => status === 'queued').length,
    lost: lost.length,
    inverted: countInverted(spans, problem),
    againAfterFinish,
    problems,
  }

  /** Only what is refused is parked, and only behind that something waits: a kill is no event's fault. */
  function isHeldRightly(id: string, status: string, rule: string | undefined): boolean {
    const event = events.get(id)
    if (!event) return false
    if (status === 'parked') return event.act === 'refuse' && rule !== 'crash'
    return status === 'queued'
  }
}

function spansOf(lines: readonly Line[], problem: (what: string) => void): Span[] {
  const spans: Span[] = []
  const running = new Map<string, Span>()
  for (const [i, line] of lines.entries()) {
    if (line.phase === 'finished') continue
    const name = `${line.process} ${line.id}`
    const span = running.get(name)
    if (line.phase === 'begin') {
      if (span) problem(`${line.id} was begun twice at a time by ${line.process}`)
      const begun: Span = { begin: line, from: i, to: Number.POSITIVE_INFINITY, end: 'cut off' }
      running.set(name, begun)
      spans.push(begun)
    } else if (!span) problem(`${line.id} came to an end in ${line.process} without a beginning`)
    else {
      span.to = i
      span.end = line.phase
      running.delete(name)
    }
  }
  return spans
}

function firstFinishes(lines: readonly Line[]): Map<string, number> {
  const finishes = new Map<string, number>()
  for (const [i, { phase, id }] of lines.entries()) {
    if (phase === 'finished' && !finishes.has(id)) finishes.set(id, i)
  }
  return finishes
}

/**
 * Within a lane an effect may begin only when none is under way, and when the last try of the version before it came to its end.
 * What was cut off was under way in a process that is dead; it is under way no more, and at no end either.
 */
function countInverted(spans: readonly Span[], problem: (what: string) => void): number {
  let inverted = 0
  for (const own of Map.groupBy(spans, ({ begin }) => begin.key).values()) {
    const last = new Map<number, Span>()
    for (const span of own) {
      const { id, process, version = 0 } = span.begin
      const before = last.get(version - 1)
      const isEarly = version > 1 && !(before?.end === 'end' && before.to < span.from)
      const beside = [...last.values()].find(
        ({ from, to, end }) => from < span.from && to > span.from && end !== 'cut off',
      )
      if (isEarly || beside) {
        inverted++
        const why = beside ? `beside ${beside.begin.id}` : 'before the one before it had come to its end'
        problem(`${id} was begun by ${process} ${why}`)
      }
      last.set(version, span)
    }
  }
  return inverted
}

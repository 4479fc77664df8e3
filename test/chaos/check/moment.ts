import type { Admin } from '../admin.ts'
import type { Tally } from '../tally.ts'

interface Moment {
  readonly positions: Readonly<Record<string, { readonly position: number; readonly epoch: number }>>
  readonly applied: number
  readonly effects: number
  readonly held: number
  readonly letters: number
  /** How many events lie at or below the checkpoint that was the lowest at the moment before. */
  readonly behind: number
  /** The same for the lowest of this moment. */
  readonly passed: number
}

const momentSql = `
SELECT (SELECT json_object_agg(subscription || '/' || partition, json_build_object('position', position, 'epoch', epoch))
          FROM holdfast.holdfast_partitions) AS positions,
       (SELECT sum(applied)::int FROM holdfast.holdfast_partitions WHERE subscription = 'effects') AS applied,
       (SELECT count(*)::int FROM effects) AS effects,
       (SELECT sum(held)::int FROM holdfast.holdfast_partitions) AS held,
       (SELECT count(*)::int FROM holdfast.holdfast_letters WHERE ended_at IS NULL) AS letters,
       (SELECT count(*)::int FROM holdfast.holdfast_events WHERE position <= $1) AS behind,
       (SELECT count(*)::int FROM holdfast.holdfast_events
         WHERE position <= (SELECT min(position) FROM holdfast.holdfast_partitions)) AS passed`

/** What holds at any moment, while everybody works: asked again and again, each time compared with the time before. */
export function createMomentCheck(admin: Admin, tally: Tally): () => Promise<void> {
  let before: Moment | undefined

  return async function checkMoment() {
    const lowestBefore = Math.min(...Object.values(before?.positions ?? {}).map(({ position }) => position), 1e15)
    const [moment] = await admin.query<Moment>(momentSql, [lowestBefore])
    if (!moment) return
    if (moment.applied !== moment.effects)
      tally.problem(`${moment.applied} events are counted as applied, and ${moment.effects} left their effect.`)
    if (moment.held !== moment.letters)
      tally.problem(`${moment.held} events are counted as held, and there are ${moment.letters} letters.`)
    for (const [name, { position, epoch }] of Object.entries(before?.positions ?? {})) {
      const now = moment.positions[name]
      if (!now || now.position < position || now.epoch < epoch)
        tally.problem(`${name} went from ${position} in epoch ${epoch} back to ${JSON.stringify(now)}.`)
    }
    if (before && moment.behind !== before.passed) {
      tally.add('lost', moment.behind - before.passed)
      tally.problem(`${moment.behind - before.passed} events appeared below ${lowestBefore}, where all had passed.`)
    }
    before = moment
  }
}

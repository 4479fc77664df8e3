import type { Bug } from '../bug.ts'

export const orderBugs: readonly Bug[] = [
  {
    name: 'order-changed-over-held-letters',
    tells: 'After a change of order, later events of a key overtake those that are held.',
    file: 'src/subscription/order.ts',
    find: `  if (lanes > 0) throw stillHeld(name, recorded, order, lanes)`,
    replace: `  if (lanes < 0) throw stillHeld(name, recorded, order, lanes)`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'claimed-with-another-order',
    tells: 'A process with the old order goes on after the change, and holds lanes of another kind.',
    file: 'src/postgres/subscription/subscriptions.ts',
    find: `AND ($7::text IS NULL OR lane_order IS NULL OR $7 = lane_order)`,
    replace: `AND ($7::text IS NULL OR lane_order IS NULL OR $7 <> '')`,
    suite: ['src/postgres/contract.test.ts'],
  },
  {
    name: 'letter-passed-over-before-it-was-stored',
    tells:
      'What comes behind a letter that its handler passes over is begun before the store has that, and overtakes it after a death.',
    file: 'src/engine/handler/verdicts.ts',
    find: `        ledger.discarded(entry, failure, { by: 'policy', reason })
        ledger.passOver(track)`,
    replace: `        ledger.discarded(entry, failure, { by: 'policy', reason })
        this.#state.tracks.end(track)`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'read-before-it-was-passed-over',
    tells:
      'Where a partition is kept in order, what comes in while a letter of its key is passed over is begun before the store has that.',
    file: 'src/engine/handler/handler-loop.ts',
    find: `    return this.#redriveStart.isLettingFlow || (handler.order === 'partition' && ledger.passing.length > 0)`,
    replace: `    return this.#redriveStart.isLettingFlow || (handler.order === 'none' && ledger.passing.length > 0)`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'passed-over-before-it-was-stored',
    tells:
      'What comes behind an event that its handler passes over is begun before the store has that, and overtakes it after a death.',
    file: 'src/engine/handler/verdicts.ts',
    find: `        ledger.skipped(entry, failure, { by: 'policy', reason })
        ledger.passOver(track)`,
    replace: `        ledger.skipped(entry, failure, { by: 'policy', reason })
        this.#state.tracks.end(track)`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'two-of-a-lane-at-once',
    tells: 'Two events of one key are handled side by side, and the later one may be first.',
    file: 'src/engine/handler/intake.ts',
    find: `    else tracks.add(lane, entry)`,
    replace: `    else tracks.add(\`\${lane}/\${record.position}\`, entry)`,
    suite: ['test/engine/handler.test.ts'],
  },
  {
    name: 'lane-forgets-that-it-is-busy',
    tells: 'An event that comes in while the one before it is handled is handled beside it, and may be first.',
    file: 'src/engine/handler/tracks.ts',
    find: `    track.entries.push(entry)
    if (!track.isRunning && !this.#sleeping.has(track)) this.#makeReady(track)`,
    replace: `    track.entries.push(entry)
    if (!this.#sleeping.has(track)) this.#makeReady(track)`,
    suite: ['test/engine/handler.test.ts'],
  },
  {
    name: 'retried-behind-the-others',
    tells: 'An event that is tried again later is overtaken by those behind it.',
    file: 'src/engine/handler/verdicts.ts',
    find: `        if (isHeldUp) {
          tracks.add(wholePartition, one)`,
    replace: `        if (one !== entry) {
          tracks.add(track.name, one)`,
    suite: ['test/engine/handler.test.ts'],
  },
  {
    name: 'order-of-the-partition-forgotten',
    tells: 'A handler that asked for the order of all events gets them in the order of their keys only.',
    file: 'src/engine/handler/intake.ts',
    find: `    else if (handler.order === 'partition') tracks.add(wholePartition, entry)`,
    replace: `    else if (handler.order === 'partition') tracks.add(lane, entry)`,
    suite: ['test/engine/order.test.ts'],
  },
  {
    name: 'wait-shortened-by-what-comes-behind',
    tells: 'A lane that waits for its next try is tried again at once whenever an event of its key comes in.',
    file: 'src/engine/handler/tracks.ts',
    find: `    track.entries.push(entry)
    if (!track.isRunning && !this.#sleeping.has(track)) this.#makeReady(track)`,
    replace: `    track.entries.push(entry)
    if (!track.isRunning) this.#makeReady(track)`,
    suite: ['test/engine/handler-policy.test.ts'],
  },
  {
    name: 'appended-without-a-look-at-the-version',
    tells: 'Of two that decided on the same state both write, and the account is overdrawn.',
    file: 'src/command/execute.ts',
    find: `  const expected = stream.version === 0 ? 'new' : stream.version`,
    replace: `  const expected = 'any'`,
    suite: ['src/command/commands.test.ts'],
  },
  {
    name: 'gap-ignored',
    tells: 'An event whose transaction commits late is never seen by anybody.',
    file: 'src/postgres/log/horizon.ts',
    find: `    era.settled = Math.max(era.settled, solid)
    if (top`,
    replace: `    era.settled = Math.max(era.settled, solid, top)
    if (top`,
    suite: ['src/postgres/log/log.test.ts'],
  },
  {
    name: 'gap-given-up-by-time',
    tells: 'An event whose transaction takes longer than somebody thought it would is never seen by anybody.',
    file: 'src/postgres/log/horizon.ts',
    find: `    const hasEnded = wait.holders.size === 0
    if`,
    replace: `    const now = performance.now()
    const hasEnded = wait.holders.size === 0 || now - (wait.since ??= now) > 250
    if`,
    suite: ['src/postgres/log/horizon.test.ts'],
  },
  {
    name: 'position-drawn-without-the-lock',
    tells: 'Readers can not see who is about to fill a gap, and pass it.',
    file: 'src/postgres/log/append.ts',
    find: `      SELECT pg_advisory_xact_lock_shared(\${appendLock}, \${schemaNumber(db.schema)}),`,
    replace: `      SELECT NULL,`,
    suite: ['src/postgres/log/log.test.ts'],
  },
  {
    name: 'prepared-transactions-overlooked',
    tells: 'Events of a transaction in two phases that is decided late are never seen by anybody.',
    file: 'src/postgres/log/horizon.ts',
    find: `seen.has(one) || (mayBePrepared && isPrepared(one))`,
    replace: `seen.has(one) || (mayBePrepared && seen.has(one))`,
    suite: ['src/postgres/log/horizon.test.ts'],
  },
  {
    name: 'another-server-taken-for-the-same',
    tells: 'After a server came back without its last commits, what is appended in their place is skipped.',
    file: 'src/postgres/log/horizon.ts',
    find: `    if (era === this.#era && era.server === server) return true`,
    replace: `    if (era === this.#era) return true`,
    suite: ['src/postgres/log/horizon.test.ts'],
  },
  {
    name: 'page-reaches-beyond-what-was-read',
    tells: 'Of a page that was cut because it was too large, the rest is skipped.',
    file: 'src/postgres/log/page.ts',
    find: `  return isCut ? (events.at(-1)?.position ?? upTo) : upTo`,
    replace: `  return events.length === 0 || isCut ? upTo : upTo`,
    suite: ['src/postgres/log/log.test.ts'],
  },
  {
    name: 'share-reaches-beyond-what-was-read',
    tells: 'Of a page of one partition that was cut because it was too large, the rest is skipped.',
    file: 'src/sqlite/log/pages.ts',
    find: `  return { events, through: last && isCut ? last.position : until }`,
    replace: `  return { events, through: last && isCut ? until : until }`,
    suite: ['test/engine/partitions.test.ts'],
  },
]

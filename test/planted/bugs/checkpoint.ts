import type { Bug } from '../bug.ts'

export const checkpointBugs: readonly Bug[] = [
  {
    name: 'checkpoint-first',
    tells: 'Whatever fails after the checkpoint has moved is lost: rows and letters of that page are never written.',
    file: 'src/sqlite/subscription/commit.ts',
    find: `  if (!moveCheckpoint(db, commit, now)) return fenced(db, lease)`,
    replace: `  if (!moveCheckpoint(db, commit, now)) return fenced(db, lease)
  db.exec('COMMIT')
  db.exec('BEGIN IMMEDIATE')`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'letter-in-a-second-commit',
    tells: 'A process that dies between the two commits has passed an event that nobody applied and nobody holds.',
    file: 'src/engine/ownership/ownership.ts',
    find: `  commit(commit: Commit): Promise<CommitOutcome> {
    this.#forced.throwIfAborted()
    return this.#parts.store.subscriptions.commit(commit)`,
    replace: `  async commit(commit: Commit): Promise<CommitOutcome> {
    this.#forced.throwIfAborted()
    const { subscriptions } = this.#parts.store
    const { held, lanes, letters } = commit
    const first = await subscriptions.commit({ ...commit, commits: undefined, held: [], lanes: [], letters: [] })
    if (first.outcome !== 'committed' || held.length + lanes.length + letters.length === 0) return first
    const none = { applied: 0, duplicate: 0, filtered: 0, held: 0, discarded: 0 }
    const rest = { rows: [], inbox: [], redriven: [], counts: none, commits: undefined }
    return subscriptions.commit({ ...commit, ...rest, from: commit.to.position })`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'letter-that-can-not-be-written-is-let-go',
    tells: 'While letters can not be written, every event that fails is lost, with nothing but a line in a log.',
    file: 'src/sqlite/subscription/commit.ts',
    find: `  writeLetters(db, lease, commit.held, commit.at)`,
    replace: `  try {
    writeLetters(db, lease, commit.held, commit.at)
  } catch {
    // It is in the log.
  }`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'no-epoch-in-sqlite',
    tells: 'A process that was stopped past its lease writes over what its successor has done.',
    file: 'src/sqlite/subscription/commit.ts',
    find: `AND epoch = ? AND owner = ? AND position = ?`,
    replace: `AND epoch >= ? AND length(?) > 0 AND position = ?`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'no-epoch-in-postgres',
    tells: 'A process that was stopped past its lease writes over what its successor has done.',
    file: 'src/postgres/subscription/commit-sql.ts',
    find: `AND epoch = $3::bigint AND owner = $4::text`,
    replace: `AND epoch >= $3::bigint AND length($4::text) > 0`,
    suite: ['src/postgres/contract.test.ts'],
  },
  {
    name: 'no-count-of-commits-in-postgres',
    tells: 'A commit that was made although its answer was lost is made once more, and everything in it counts twice.',
    file: 'src/postgres/subscription/commit-sql.ts',
    find: `AND position = $5::bigint AND commits = coalesce($18::bigint, commits)`,
    replace: `AND position = $5::bigint AND commits >= coalesce($18::bigint, 0)`,
    suite: ['src/postgres/contract.test.ts'],
  },
  {
    name: 'no-count-of-commits-in-sqlite',
    tells: 'A commit that was made although its answer was lost is made once more, and everything in it counts twice.',
    file: 'src/sqlite/subscription/commit.ts',
    find: `AND commits = coalesce(?, commits)`,
    replace: `AND commits >= coalesce(?, 0)`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'checkpoint-goes-back',
    tells: 'A late commit puts the checkpoint back, and everything since then is applied again.',
    file: 'src/sqlite/subscription/commit.ts',
    find: `AND owner = ? AND position = ? AND commits`,
    replace: `AND owner = ? AND position >= ? AND commits`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'checkpoint-over-an-unfinished-event',
    tells: 'A restart skips the slow event that others had overtaken: its effect never happens.',
    file: 'src/engine/handler/window.ts',
    find: `    if (first < 0) return { position: this.#through`,
    replace: `    if (first !== 0) return { position: this.#through`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'marks-forgotten-by-the-second-owner',
    tells: 'Effects that were had above the checkpoint are had again after two restarts in a row.',
    file: 'src/engine/handler/window.ts',
    find: `      if (to > this.#through) ranges.push(`,
    replace: `      if (to > this.#through && from > to) ranges.push(`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'marks-ignored-after-a-restart',
    tells: 'Effects that were had above the checkpoint are had again after a restart.',
    file: 'src/engine/handler/intake.ts',
    find: `    if (isMarked(this.#marks, record.position)) entry.isDone = true
    else if (!reading)`,
    replace: `    if (!reading)`,
    suite: ['test/engine/handler.test.ts'],
  },
  {
    name: 'unknown-commit-taken-for-failed',
    tells:
      'After a lost answer the process takes its own commit for somebody else’s, and does again what was under way.',
    file: 'src/engine/handler/group-commit.ts',
    find: `    if (state.checkpoint.commits === pending.commit.commits) return this.#write(pending)
    this.#accept(pending)
    return 'worked'`,
    replace: `    return this.#write(pending)`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'unknown-commit-taken-for-made',
    tells:
      'After a commit that never arrived the outcomes in it are forgotten: letters are lost, effects happen again.',
    file: 'src/engine/handler/group-commit.ts',
    find: `    if (state.checkpoint.commits === pending.commit.commits) return this.#write(pending)`,
    replace: ``,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'memory-kept-after-a-failed-commit',
    tells: 'Rows are folded on top of a page that was never written, so amounts are booked twice.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    this.#partition = undefined
    if (!known || !this.#ownership.lease) return 'lost'`,
    replace: `    if (!known || !this.#ownership.lease) return 'lost'`,
    suite: ['test/engine/faults.test.ts'],
  },
  {
    name: 'memory-kept-after-a-refused-commit',
    tells: 'A page that a person’s act has made void is booked on top of itself.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    if (done !== 'refused') this.#partition = known`,
    replace: `    this.#partition = known`,
    suite: ['test/engine/lifecycle.test.ts'],
  },
  {
    name: 'trimmed-source-is-waited-for',
    tells: 'A source has dropped events that nobody has read, and the subscription waits for them in silence.',
    file: 'src/engine/process/worker.ts',
    find: `  return error instanceof HoldfastError && (!(`,
    replace: `  if ((error as { code?: string }).code === 'SOURCE_TRIMMED') return false
  return error instanceof HoldfastError && (!(`,
    suite: ['test/engine/gaps.test.ts'],
  },
  {
    name: 'source-that-lost-events-is-accepted',
    tells: 'After a restore from an old backup the subscription waits in silence and skips what is appended anew.',
    file: 'src/engine/process/worker.ts',
    find: `    if (end < state.checkpoint.position) throw regressed(name, source.name, state.checkpoint.position, end)`,
    replace: ``,
    suite: ['test/engine/gaps.test.ts'],
  },
]

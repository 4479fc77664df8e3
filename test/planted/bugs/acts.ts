import type { Bug } from '../bug.ts'

/** What people rely on when they look, ask and tidy up. */
export const actBugs: readonly Bug[] = [
  {
    name: 'verify-overlooks-rows',
    tells: 'A row that somebody has changed by hand passes for what its events make of it.',
    file: 'src/verify/verify.ts',
    find: `        if ((expected && show(expected)) !== show(row)) this.#differ(`,
    replace: `        if (expected?.key === '') this.#differ(`,
    suite: ['src/verify/verify.test.ts'],
  },
  {
    name: 'verify-overlooks-rows-that-are-gone',
    tells: 'A row that is not there although events have made it goes unnoticed.',
    file: 'src/verify/verify.ts',
    find: `      if (folding.changed) this.#differ(`,
    replace: `      if (folding.changed && folding.key === '') this.#differ(`,
    suite: ['src/verify/verify.test.ts'],
  },
  {
    name: 'verify-overlooks-counts',
    tells: 'Events that were counted and never applied go unnoticed.',
    file: 'src/verify/verify.ts',
    find: `        if (counts[outcome] !== checkpoint.counts[outcome])`,
    replace: `        if (counts[outcome] > checkpoint.counts[outcome] + 1)`,
    suite: ['src/verify/verify.test.ts'],
  },
  {
    name: 'verify-overlooks-lanes-that-are-free',
    tells: 'Letters of a lane that is not held any more are never let go, and nobody is told.',
    file: 'src/verify/verify.ts',
    find: `      if (!hold) this.#differ({ kind: 'lane', lane, what: 'it has letters, but is not held' })
      else if (!head)`,
    replace: `      if (!hold) continue
      else if (!head)`,
    suite: ['src/verify/verify.test.ts'],
  },
  {
    name: 'verify-overlooks-what-overtook',
    tells: 'Events that were handled before an earlier one of their key go unnoticed.',
    file: 'src/verify/verify.ts',
    find: `    if (this.#heads.has(lane)) this.#wrong(record`,
    replace: `    if (this.#heads.has(lane) && reading.failure) this.#wrong(record`,
    suite: ['src/verify/verify.test.ts'],
  },
  {
    name: 'verify-overlooks-other-bytes',
    tells: 'A letter that is not what came in any more goes unnoticed.',
    file: 'src/verify/verify.ts',
    find: `    a.body === b.body &&`,
    replace: ``,
    suite: ['src/verify/verify.test.ts'],
  },
  {
    name: 'condition-that-fell-out-means-all',
    tells: 'A filter whose only condition is undefined discards every letter there is.',
    file: 'src/operator/selection.ts',
    find: `  if (Object.keys(filter).length === 0 || Object.values(filter).includes(undefined))`,
    replace: `  if (Object.values(filter).length > 100)`,
    suite: ['test/operator/asking.test.ts'],
  },
  {
    name: 'dry-run-that-is-none',
    tells: 'To look at what a redrive would do does it.',
    file: 'src/sqlite/subscription/perform.ts',
    find: `        if (guard.db.handle.isOpen) session.close()
        this.#takeBack(guard)`,
    replace: `        if (guard.db.handle.isOpen) session.close()
        guard.commit()`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'purge-of-what-people-ended',
    tells: 'Of what people decided nothing is left, and a rebuild brings it back.',
    file: 'src/sqlite/letters/purge.ts',
    find: `l.ended_at < ?2 AND l.ended_reason IS NULL AND NOT EXISTS (`,
    replace: `l.ended_at < ?2 AND NOT EXISTS (`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'marks-swept-too-soon',
    tells: 'What was done is forgotten before its time, and a repeat is done again.',
    file: 'src/sqlite/subscription/inbox.ts',
    find: `FROM holdfast_inbox WHERE until <= ? ORDER BY until LIMIT ?`,
    replace: `FROM holdfast_inbox WHERE until <= ? + 1000000 ORDER BY until LIMIT ?`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'tail-with-a-hole',
    tells: 'What is kept in memory of the end of the log has a hole, and the events in it are skipped by everybody.',
    file: 'src/postgres/log/tail.ts',
    find: `    if (after !== this.#through) this.#clear(after)`,
    replace: ``,
    suite: ['src/postgres/log/tail.test.ts'],
  },
]

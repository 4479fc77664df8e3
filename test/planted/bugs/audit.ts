import type { Bug } from '../bug.ts'

export const auditBugs: readonly Bug[] = [
  {
    name: 'act-without-an-entry',
    tells: 'Somebody stopped a subscription, and nobody can find out who.',
    file: 'src/sqlite/subscription/subscriptions.ts',
    find: `        writeDeed(db, withCounts(deed, pauseCounts(wasPaused, given !== undefined)))`,
    replace: ``,
    suite: ['test/operator/deeds.test.ts'],
  },
  {
    name: 'entry-without-an-act',
    tells: 'The audit tells of a redrive that was cancelled, though it had ended before.',
    file: 'src/sqlite/redrive/redrives.ts',
    find: `          if (left !== undefined) writeDeed(db, withCounts(deed, { pendingBefore: left, pendingAfter: 0 }))`,
    replace: `          writeDeed(db, withCounts(deed, { pendingBefore: left ?? 0, pendingAfter: 0 }))`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'reason-not-in-the-hash',
    tells: 'Whoever can write to the database can change the reasons of what was done, and nobody will know.',
    file: 'src/audit/audit.ts',
    find: `sha256Hex(JSON.stringify([number, previous, by, act, target, reason, at, told]))`,
    replace: `sha256Hex(JSON.stringify([number, previous, by, act, target, at, told]))`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'entry-cut-out-unnoticed',
    tells: 'An entry can be taken out of the audit, and nobody will know.',
    file: 'src/audit/audit.ts',
    find: `  if (entry.number !== before.number + 1) return \`entry \${before.number + 1} is missing\`
  if (entry.previous !== before.hash) return \`entry \${entry.number} does not follow entry \${before.number}\``,
    replace: ``,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'two-entries-of-one-number',
    tells: 'Of two people who act at the same moment one is told that it failed, or the chain has a fork.',
    file: 'src/postgres/audit/audit.ts',
    find: `  await client.query(queryOf('SELECT pg_advisory_xact_lock($1, $2)', [auditLock, schemaNumber(db.schema)]))`,
    replace: ``,
    suite: ['src/postgres/audit/audit.test.ts'],
  },
  {
    name: 'end-cut-off-unnoticed',
    tells: 'The last entries of the audit can be taken away, also when somebody has noted how it ended.',
    file: 'src/audit/verify.ts',
    find: `  if (isMet || !expected) return report(undefined)`,
    replace: `  if (isMet || !expected || expected.number > head.number) return report(undefined)`,
    suite: ['test/operator/deeds.test.ts'],
  },
]

import type { Bug } from '../bug.ts'

export const leaseBugs: readonly Bug[] = [
  {
    name: 'epoch-not-raised-in-sqlite',
    tells: 'Two owners have the same epoch, so nothing keeps the older one from writing.',
    file: 'src/sqlite/subscription/subscriptions.ts',
    find: `SET epoch = epoch + 1, owner = ?, holder = ?`,
    replace: `SET epoch = max(epoch, 1), owner = ?, holder = ?`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'epoch-not-raised-for-the-same-name',
    tells: 'A process that comes back under its old name shares the epoch with the one that it replaces.',
    file: 'src/postgres/subscription/subscriptions.ts',
    find: `SET epoch = epoch + 1, owner = $3`,
    replace: `SET epoch = epoch + CASE WHEN owner = $3 THEN 0 ELSE 1 END, owner = $3`,
    suite: ['src/postgres/contract.test.ts'],
  },
  {
    name: 'lease-of-somebody-else-renewed',
    tells: 'A process that lost its partition goes on as if it had it, and keeps its successor’s lease alive.',
    file: 'src/sqlite/subscription/subscriptions.ts',
    find: `SET lease_until = ? WHERE subscription = ? AND partition = ? AND epoch = ? AND owner = ?'`,
    replace: `SET lease_until = ? WHERE subscription = ? AND partition = ? AND epoch >= ? AND length(?) > 0'`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'lease-of-somebody-else-given-back',
    tells: 'A process that stops late frees the partition under its successor, and two work on it.',
    file: 'src/postgres/subscription/subscriptions.ts',
    find: `presence = NULL, lease_until = '-infinity'
      WHERE \${ofLease} RETURNING 1`,
    replace: `presence = NULL, lease_until = '-infinity'
      WHERE subscription = $1 AND partition = $2 AND epoch >= $3 AND length($4) > 0 RETURNING 1`,
    suite: ['src/postgres/contract.test.ts'],
  },
  {
    name: 'lease-by-the-wall-clock',
    tells:
      'Setting the clock back makes a process believe in a lease that is long over, and it goes on beside its successor.',
    file: 'src/engine/ownership/ownership.ts',
    find: `  renewedAt = 0
  #commitAskedAt = 0`,
    replace: `  #renewedAt = 0
  get renewedAt() {
    const { clock } = this.#parts.runtime
    return clock.mono() - (clock.now() - this.#renewedAt)
  }
  set renewedAt(at) {
    const { clock } = this.#parts.runtime
    this.#renewedAt = at + clock.now() - clock.mono()
  }
  #commitAskedAt = 0`,
    suite: ['test/attacks/liveness.test.ts'],
  },
  {
    name: 'lease-not-renewed-while-idle',
    tells:
      'A partition with nothing to do changes hands with every lease, and each time what was in memory is read again.',
    file: 'src/engine/ownership/ownership.ts',
    find: `    if (await store.subscriptions.renew(this.lease, leaseMs)) this.#renewed(askedAt)
    else this.lost(`,
    replace: `    this.#renewed(askedAt)
    if (leaseMs < 0) this.lost(`,
    suite: ['test/engine/faults.test.ts'],
  },
  {
    name: 'loss-of-a-lease-not-noticed',
    tells: 'A process whose lease is gone keeps calling the outside world beside the one that has it now.',
    file: 'src/engine/ownership/ownership.ts',
    find: `    else this.lost(await store.subscriptions.load(subscription.name, this.share.partition))`,
    replace: `    else this.#renewed(askedAt)`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'lease-counted-from-the-answer',
    tells:
      'Where the answer to a renewal takes long, a process goes on with calls when its lease is over, beside its successor.',
    file: 'src/engine/ownership/ownership.ts',
    find: `    if (await store.subscriptions.renew(this.lease, leaseMs)) this.#renewed(askedAt)`,
    replace: `    if (await store.subscriptions.renew(this.lease, leaseMs)) this.renewedAt = Math.max(askedAt, runtime.clock.mono())`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'handler-goes-on-when-its-lease-ran-out',
    tells: 'While the store is away, a process goes on with calls that its successor makes as well.',
    file: 'src/engine/handler/attempts.ts',
    find: `ownership.pause !== undefined || !ownership.isCurrent()`,
    replace: `ownership.pause !== undefined`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'attempts-of-a-fenced-owner-go-on',
    tells:
      'A call that is under way goes on, though the process lost its partition and its successor makes the call again.',
    file: 'src/engine/handler/attempts.ts',
    find: `    for (const attempt of this.#state.running.values()) attempt.giveUp(reason)`,
    replace: `    if (this.#isBarred) for (const attempt of this.#state.running.values()) attempt.giveUp(reason)`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'sql-committed-without-its-checkpoint',
    tells:
      'What the SQL of a page wrote stays, although its checkpoint was refused, and is written again with the next try.',
    file: 'src/sqlite/subscription/perform.ts',
    find: `    if (outcome.outcome === 'committed') this.end()`,
    replace: `    this.end()`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'paused-but-goes-on',
    tells: 'After a pause was confirmed, pages that were under way are applied all the same.',
    file: 'src/sqlite/subscription/commit.ts',
    find: `() => (commit.evenPaused ? undefined : barred(db, commit.lease)) ?? writePage(db, commit, now),`,
    replace: `() => writePage(db, commit, now),`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'dead-process-not-missed',
    tells:
      'The partitions of a process that was killed wait for the end of its lease, though everybody can see that it is gone.',
    file: 'src/sqlite/subscription/members.ts',
    find: `  return owner === null || until <= now || isGone(holder, self)`,
    replace: `  return owner === null || until <= now`,
    suite: ['src/sqlite/sqlite.test.ts'],
  },
  {
    name: 'nobody-looks-at-the-log',
    tells: 'What another process appended is not handled until somebody appends in this one.',
    file: 'src/engine/process/log-poller.ts',
    find: `      for (const runner of this.#runners) runner.wakeBelow(head ?? Number.POSITIVE_INFINITY)`,
    replace: `      if (head === undefined) for (const runner of this.#runners) runner.wake()`,
    suite: ['test/engine/lifecycle.test.ts'],
  },
]

import type { Bug } from '../bug.ts'

export const redriveBugs: readonly Bug[] = [
  {
    name: 'redrive-to-all',
    tells: 'A redrive of one subscription runs the code of others, whose effects happen once more.',
    file: 'src/sqlite/redrives.ts',
    find: `  SELECT id FROM holdfast_redrives INDEXED BY holdfast_redrives_running
  WHERE subscription = ? AND status = 'running' ORDER BY number`,
    replace: `  SELECT id FROM holdfast_redrives
  WHERE length(?) > 0 AND status = 'running' ORDER BY number`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'redrive-of-what-came-later',
    tells: 'A redrive lets go what the person who asked for it has never seen.',
    file: 'src/engine/redriving.ts',
    find: `  return hold?.headPosition === position && isActedOn(act, hold)`,
    replace: `  return hold !== undefined && position >= 0 && isActedOn(act, hold)`,
    suite: ['src/engine/redrive.test.ts'],
  },
  {
    name: 'redrive-without-an-order',
    tells: 'What failed first is let go last, or in whatever order the database has it.',
    file: 'src/sqlite/redrives.ts',
    find: `AND \${actedOnSql[act]} \${sql} ORDER BY h.head_position, h.partition`,
    replace: `AND \${actedOnSql[act]} \${sql}`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'redrive-goes-over-what-fails',
    tells: 'When a letter fails again, those behind it are applied without it.',
    file: 'src/engine/lanes.ts',
    find: `      if (!isThrough) break`,
    replace: ``,
    suite: ['src/engine/gaps.test.ts'],
  },
  {
    name: 'canary-does-not-stop',
    tells: 'A redrive that was to stop at its first failure lets thousands fail.',
    file: 'src/redrive/stages.ts',
    find: `  if (maxFailures !== undefined && failed + deferred > maxFailures)`,
    replace: `  if (maxFailures !== undefined && failed + deferred > lanes)`,
    suite: ['src/redrive/stages.test.ts'],
  },
  {
    name: 'canary-goes-on-over-an-open-breaker',
    tells: 'A canary that meets an open breaker takes that for a success and goes on to all lanes.',
    file: 'src/redrive/stages.ts',
    find: `failed + deferred > maxFailures`,
    replace: `failed > maxFailures`,
    suite: ['src/redrive/stages.test.ts'],
  },
  {
    name: 'redrive-waits-for-a-breaker',
    tells:
      'A redrive whose lanes meet an open breaker stays running for as long as the endpoint is away, and its lanes can not be discarded.',
    file: 'src/engine/handling/ledger.ts',
    find: `    const redrive = holding.status === 'retrying' ? before?.redrive : undefined`,
    replace: `    const redrive = holding.status === 'parked' ? undefined : before?.redrive`,
    suite: ['src/engine/handling/ledger.test.ts'],
  },
  {
    name: 'edit-accepted-and-not-tried',
    tells: 'An edit that comes while its lane is released is accepted, and the old data is what the handler gets.',
    file: 'src/engine/handling/drains.ts',
    find: `      this.#released.add(lane)
      early.push(lane)`,
    replace: `      lanes.add(lane)`,
    suite: ['src/engine/handling/drains.test.ts'],
  },
  {
    name: 'lane-that-waits-can-not-be-discarded',
    tells: 'The lanes of an endpoint that is gone for good have no way out.',
    file: 'src/redrive/acts.ts',
    find: `act === 'skip' : act === 'discard' || act === 'resolve'`,
    replace: `act === 'skip' : false`,
    suite: ['src/redrive/acts.test.ts'],
  },
  {
    name: 'redrive-has-the-patience-of-the-policy',
    tells: 'Whoever lets a letter go waits for hours, instead of being told that it failed again.',
    file: 'src/engine/handling/verdicts.ts',
    find: `        if (this.#isRedriven(entry)) return this.#park(track, entry, failure)
        return`,
    replace: `        return`,
    suite: ['src/engine/handler-redrive.test.ts'],
  },
  {
    name: 'redrive-done-when-it-begins',
    tells: 'A redrive says that it is done before anything was tried.',
    file: 'src/engine/handling/ledger.ts',
    find: `    this.#progress(lane, 0, 'running')
    if (act`,
    replace: `    this.#progress(lane, 0, 'done')
    if (act`,
    suite: ['src/engine/handler-redrive.test.ts'],
  },
  {
    name: 'redrive-forgotten-by-the-next-owner',
    tells: 'After a crash a redrive is never finished, and says for ever that it is under way.',
    file: 'src/sqlite/letter-writes.ts',
    find: `        hold?.redrive ?? null,`,
    replace: `        null,`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'redrive-lost-with-the-next-letter',
    tells: 'A redrive of a lane with several letters forgets after the first that it is one, and is never finished.',
    file: 'src/engine/handling/ledger.ts',
    find: `      const { since, redrive } = before
`,
    replace: `      const { since, redrive = undefined } = { ...before, redrive: undefined }
`,
    suite: ['src/engine/handler-redrive.test.ts'],
  },
  {
    name: 'redrive-of-what-is-under-way',
    tells: 'Somebody discards a letter that is just being handled, and it counts as discarded and as done.',
    file: 'src/engine/handling/beginnings.ts',
    find: `    if (draining.has(lane) || ledger.touches(lane)) return false`,
    replace: ``,
    suite: ['src/engine/handler-redrive.test.ts'],
  },
  {
    name: 'two-redrives-of-one-lane',
    tells: 'Two people who let the same lane go have it tried twice.',
    file: 'src/sqlite/redrives.ts',
    find: `  const lanes = heads.filter(({ busy }) => busy === 0)`,
    replace: `  const lanes = heads`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'redrive-as-fast-as-it-goes',
    tells: 'A redrive that was to go slowly floods a service that has just come back.',
    file: 'src/engine/handling/attempts.ts',
    find: `    if (budgetMs === 0) pace?.take(1)`,
    replace: ``,
    suite: ['src/engine/handler-redrive.test.ts'],
  },
  {
    name: 'revision-in-the-hands-of-the-owner',
    tells: 'A letter is applied as it was, although somebody has mended it and was told that it is done.',
    file: 'src/sqlite/revisions.ts',
    find: `          db.run(moveSql, letter.subscription, place.partition)`,
    replace: ``,
    suite: ['test/attacks/revised-meanwhile.test.ts'],
  },
  {
    name: 'revision-not-applied',
    tells: 'What somebody mended is applied as it was before.',
    file: 'src/engine/interpret.ts',
    find: `  return revision ? { ...event, body: revision.body } : event`,
    replace: `  return revision ? { ...event } : event`,
    suite: ['src/engine/redrive.test.ts'],
  },
]

import type { Bug } from '../bug.ts'

export const letterBugs: readonly Bug[] = [
  {
    name: 'permanent-failures-are-passed-over',
    tells: 'An event with bad data is gone with a line in a log, instead of being held until somebody has mended it.',
    file: 'src/failure/decide.ts',
    find: `      case 'park':
        return parked`,
    replace: `      case 'park':
        return { decision: 'skip', reason: 'it failed' }`,
    suite: ['src/failure/policy.test.ts'],
  },
  {
    name: 'held-lanes-not-looked-up-after-a-restart',
    tells: 'After a restart the events behind a held one are applied without it.',
    file: 'src/engine/process/worker.ts',
    find: `      held: new Map(lanes.map((lane) => [lane.lane, lane])),`,
    replace: `      held: new Map(),`,
    suite: ['test/engine/flow.test.ts'],
  },
  {
    name: 'held-lane-of-a-fold-is-passed-over',
    tells: 'What comes behind a held event counts as not subscribed to, and never reaches its row.',
    file: 'src/engine/ownership/partition.ts',
    find: `    if (hold || !folding) return 'queue'`,
    replace: `    if (!folding) return 'queue'`,
    suite: ['test/engine/flow.test.ts'],
  },
  {
    name: 'held-lane-of-a-handler-is-overtaken',
    tells: 'Events go out to the world before the one of the same key that failed.',
    file: 'src/engine/handler/intake.ts',
    find: `    else if (partition.held.has(lane)) this.#end(entry, () => ledger.queued(entry))`,
    replace: ``,
    suite: ['test/engine/handler.test.ts'],
  },
  {
    name: 'held-lane-of-sql-is-overtaken',
    tells: 'SQL runs for later events of a key although an earlier one is held.',
    file: 'src/engine/projection/work.ts',
    find: `    if (hold) return this.#queue(item, hold)
    const done = await this.#effect(item, performing)`,
    replace: `    const done = await this.#effect(item, performing)`,
    suite: ['test/engine/sql.test.ts'],
  },
  {
    name: 'letters-in-order-of-arrival',
    tells: 'Held events of a source that delivers out of order are applied in the wrong order.',
    file: 'src/sqlite/letters/letters.ts',
    find: `ORDER BY l.sequence, l.position LIMIT ?4`,
    replace: `ORDER BY l.position LIMIT ?4`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'letters-in-order-of-arrival-in-postgres',
    tells: 'Held events of a source that delivers out of order are applied in the wrong order.',
    file: 'src/postgres/letters/letter-sql.ts',
    find: `max(position) OVER (ORDER BY sequence, position) AS turn FROM (`,
    replace: `position AS turn FROM (`,
    suite: ['src/postgres/contract.test.ts'],
  },
  {
    name: 'pages-of-letters-from-the-wrong-end',
    tells: 'Whoever goes through the letters page by page misses most of them.',
    file: 'src/postgres/letters/letter-sql.ts',
    find: `AND l.position > $2 \${sql}
        ORDER BY l.position, l.partition LIMIT $3`,
    replace: `AND l.position > $2 \${sql}
        ORDER BY l.position DESC, l.partition LIMIT $3`,
    suite: ['src/postgres/contract.test.ts'],
  },
  {
    name: 'newest-letters-first',
    tells:
      'Whoever works through the list of letters from its beginning mends them in the wrong order, and misses pages.',
    file: 'src/sqlite/letters/letters.ts',
    find: `    ORDER BY l.position, l.partition LIMIT ?\``,
    replace: `    ORDER BY l.position DESC, l.partition LIMIT ?\``,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'one-kind-of-letters-forgotten',
    tells: 'A lane is released while letters of it are held, and later events overtake them.',
    file: 'src/sqlite/letters/letters.ts',
    find: `mergeLetters(rowsOf(foreign), rowsOf(logged), ({ position }) => position)`,
    replace: `mergeLetters(rowsOf(foreign), [], ({ position }) => position)`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'text-filter-in-stacks',
    tells: 'A text filter selects letters that have nothing to do with it, and an operator discards them.',
    file: 'src/dead-letter/searchable.ts',
    find: `export const searchedOfFailure = ['errorType', 'code', 'message'] as const`,
    replace: `export const searchedOfFailure = ['errorType', 'code', 'message', 'stack'] as const`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'letter-as-json-understands-it',
    tells: 'A held event comes back other than it was: large numbers rounded, keys that stood twice gone.',
    file: 'src/sqlite/letters/letter-writes.ts',
    find: `      event.body,
      event.metadata ?? null,`,
    replace: `      typeof event.body === 'string' ? JSON.stringify(JSON.parse(event.body)) : event.body,
      event.metadata ?? null,`,
    suite: ['test/engine/gaps.test.ts'],
  },
  {
    name: 'discard-leaves-a-gap',
    tells: 'A lane whose head was discarded waits for ever for a version that will never come.',
    file: 'src/engine/projection/work.ts',
    find: `    if (version === undefined) return
    if (folding) folding.done`,
    replace: `    if (version !== undefined) return
    if (folding) folding.done`,
    suite: ['test/engine/redrive.test.ts'],
  },
  {
    name: 'lane-flows-with-letters-left',
    tells: 'Of a long queue only the first part is let go; the rest is never applied, and new events overtake it.',
    file: 'src/engine/outcome/ledger.ts',
    find: `    if (!before) return
    if (next) {`,
    replace: `    if (!before) return
    if (next && next.position < before.headPosition) {`,
    suite: ['test/engine/gaps.test.ts'],
  },
  {
    name: 'lane-flows-before-its-letters-are-written',
    tells: 'An event that was just queued behind a lane is overlooked when the lane is let go, and is never handled.',
    file: 'src/engine/handler/held-lane-drain.ts',
    find: `    const lanes = [...this.#finishing.keys()].filter((lane) => !ledger.touches(lane))`,
    replace: `    const lanes = [...this.#finishing.keys()]`,
    suite: ['test/engine/handler.test.ts'],
  },
  {
    name: 'lane-taken-up-before-it-is-written',
    tells: 'A lane whose letter is not in the store yet seems empty and flows again, and its event is never handled.',
    file: 'src/engine/handler/held-lane-drain.ts',
    find: `      if (ledger.touches(lane)) {
        early.push(lane)
        continue
      }
      this`,
    replace: `      this`,
    suite: ['test/engine/handler-faults.test.ts'],
  },
  {
    name: 'missing-version-is-parked',
    tells: 'A version that comes late does not heal its lane: a person has to let every one of them go.',
    file: 'src/engine/projection/work.ts',
    find: `    if (placement === 'wait') this.#hold(item, 'waiting', undefined)`,
    replace: `    if (placement === 'wait') this.#hold(item, 'parked', undefined)`,
    suite: ['test/engine/gaps.test.ts'],
  },
  {
    name: 'bystander-is-blamed',
    tells: 'When the database refuses a row, an innocent event of that row is held instead of the one that spoiled it.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    if (second !== undefined) this.#reading.endBefore(second)
    else if (first !== undefined)`,
    replace: `    if (first !== undefined)`,
    suite: ['test/engine/partitions.test.ts'],
  },
  {
    name: 'savepoint-forgotten',
    tells: 'What an event wrote before it failed stays in the read model, and is there twice when it is let go.',
    file: 'src/engine/projection/work.ts',
    find: `      await (way === 'bold' ? tx.run(effect) : tx.attempt(effect))`,
    replace: `      await tx.run(effect)`,
    suite: ['test/engine/sql.test.ts'],
  },
  {
    name: 'held-lanes-of-a-first-run-are-kept',
    tells: 'A lane stays held by a transaction that was taken back: it has no letter, and nobody can let it go.',
    file: 'src/engine/projection/page-loop.ts',
    find: `        partition.held.clear()
        for (const [lane, hold] of before) partition.held.set(lane, hold)`,
    replace: ``,
    suite: ['test/engine/sql.test.ts'],
  },
  {
    name: 'deferred-rule-looked-at-in-the-end',
    tells:
      'An event that breaks a rule which is only looked at on commit stops its partition: nobody knows which one it was.',
    file: 'src/postgres/subscription/perform.ts',
    find: `      await this.run(work)
      await this.#look()`,
    replace: `      await this.run(work)
      await this.#own('RELEASE SAVEPOINT holdfast_attempt')`,
    suite: ['src/postgres/subscription/perform.test.ts'],
  },
]

import type { Bug } from '../bug.ts'

export const idempotencyBugs: readonly Bug[] = [
  {
    name: 'marked-before-it-is-done',
    tells: 'An event that fails once counts as done, and is never tried again.',
    file: 'src/engine/handler/dedup.ts',
    find: `    this.#begun.set(event, key)
    return false`,
    replace: `    this.#begun.set(event, key)
    this.#remember(key, Number.POSITIVE_INFINITY)
    return false`,
    suite: ['test/engine/dedupe.test.ts'],
  },
  {
    name: 'checked-and-then-done',
    tells: 'The same order that comes twice at the same moment is paid twice.',
    file: 'src/engine/handler/dedup.ts',
    find: `    for (let other = this.#underWay.get(key); other; other = this.#underWay.get(key)) await other`,
    replace: ``,
    suite: ['test/engine/dedupe.test.ts'],
  },
  {
    name: 'mark-apart-from-the-outcome',
    tells: 'After a restart nobody knows what was done, and repeats are done again.',
    file: 'src/sqlite/subscription/commit.ts',
    find: `  writeInbox(db, lease.subscription, commit.inbox ?? [])`,
    replace: ``,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'marks-of-five-minutes',
    tells: 'What is delivered again after more than five minutes is done again, whatever was asked for.',
    file: 'src/engine/handler/dedup.ts',
    find: `    const until = this.#clock.now() + this.#dedupe.windowMs`,
    replace: `    const until = this.#clock.now() + Math.min(this.#dedupe.windowMs, 300_000)`,
    suite: ['test/engine/dedupe.test.ts'],
  },
  {
    name: 'key-of-every-attempt',
    tells: 'A service that keeps to idempotency keys books every retry once more.',
    file: 'src/engine/handler/attempts.ts',
    find: `      idempotencyKey: \`\${subscription.name}/\${event.id}\`,`,
    replace: `      idempotencyKey: \`\${subscription.name}/\${event.id}/\${begun}\`,`,
    suite: ['test/engine/handler.test.ts'],
  },
  {
    name: 'id-used-again-passes-for-the-same',
    tells: 'An event with new content under an old id is dropped, and its writer is told that all is well.',
    file: 'src/sqlite/log/append.ts',
    find: `    if (found.type !== type || found.data !== body) return conflict('it belongs to an event with other content')`,
    replace: ``,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'command-in-doubt-decides-anew',
    tells: 'A command whose answer was lost writes a second set of events when the first one arrives after all.',
    file: 'src/command/execute.ts',
    find: `    tried = tried.tried === 'late' ? await attempt(executor, call) : await append(executor, call, tried.decided)`,
    replace: `    tried = await attempt(executor, call)`,
    suite: ['src/command/commands.test.ts'],
  },
  {
    name: 'mark-handed-on-counts',
    tells: 'A command is taken for done on a key on which it never ran, because metadata was copied along.',
    file: 'src/command/mark.ts',
    find: `  if (id !== command.id || marked !== event.id) return false`,
    replace: `  if (id !== command.id || marked === '') return false`,
    suite: ['src/command/commands.test.ts'],
  },
  {
    name: 'repeats-applied-again',
    tells: 'A source that delivers twice books every amount twice.',
    file: 'src/engine/ownership/partition.ts',
    find: `  if (done !== undefined && version <= done) return 'duplicate'`,
    replace: `  if (done !== undefined && version < done) return 'duplicate'`,
    suite: ['test/engine/gaps.test.ts'],
  },
  {
    name: 'repeat-of-a-held-event-is-held-again',
    tells: 'What is delivered again while it is held is applied twice when it is let go.',
    file: 'src/engine/projection/work.ts',
    find: `      if (present.has(name)) return`,
    replace: `      if (present.has(name) && hold === undefined) return`,
    suite: ['test/engine/gaps.test.ts'],
  },
]

import type { Bug } from '../bug.ts'

const ownKey = ['test/regressions/own-key-order.test.ts']
const partitionOrder = ['test/regressions/partition-order-letter.test.ts']
const drains = ['test/regressions/drain-after-an-act.test.ts']

/** What blocks a whole partition, and who may say that everything is done. */
export const blockedBugs: readonly Bug[] = [
  {
    name: 'drained-by-what-was-true-before',
    tells: 'After a reset by an operator drain() returns at once, and the rows are missing.',
    file: 'src/engine/engine.ts',
    find: `      if (hasHeard && runner.reached(target)) end(resolve)`,
    replace: `      if (runner.reached(target)) end(resolve)`,
    suite: drains,
  },
  {
    name: 'drained-by-a-lost-owner',
    tells: 'A worker whose partition was taken from it by a reset still says that everything is processed.',
    file: 'src/engine/worker.ts',
    find: `    return isRead && this.#loop?.isDue === false && this.#tenure.isCurrent()`,
    replace: `    return isRead && this.#loop?.isDue === false`,
    suite: drains,
  },
  {
    name: 'paused-by-what-was-true-before',
    tells: 'After an operator resumed a subscription drain() says that it is paused.',
    file: 'src/engine/engine.ts',
    find: `      else if (hasHeard && pause)`,
    replace: `      else if (pause)`,
    suite: drains,
  },
  {
    name: 'answered-by-an-earlier-question',
    tells: 'drain() takes the answer to a question that was asked before an operator acted for the answer to its own.',
    file: 'src/engine/attendance.ts',
    find: `      this.#answer(asked)`,
    replace: `      this.#answer(this.#waiting.length)`,
    suite: ['src/engine/attendance.test.ts'],
  },
  {
    name: 'unreadable-in-the-lane-of-its-stream',
    tells:
      'An event that can not be read is overtaken by later events of its row, and the row is out of order after the fix.',
    file: 'src/engine/interpret.ts',
    find: `  const lane = consumer.keyOf ? unknownRow : record.key`,
    replace: `  const lane = consumer.keyOf && consumer.kind !== 'fold' ? unknownRow : record.key`,
    suite: ownKey,
  },
  {
    name: 'page-goes-on-behind-what-can-not-be-read',
    tells: 'The events that were read together with one that can not be read are applied before it.',
    file: 'src/engine/page.ts',
    find: `    if (reading?.failure && holdsUp(subscription, lane)) break`,
    replace: ``,
    suite: ownKey,
  },
  {
    name: 'reads-on-behind-what-can-not-be-read',
    tells: 'The page after an event that can not be read is applied before it.',
    file: 'src/engine/pages.ts',
    find: `    if (settings.only === 'letters' || heldUpBy(subscription, partition.held)) return 'idle'`,
    replace: `    if (settings.only === 'letters') return 'idle'`,
    suite: ownKey,
  },
  {
    name: 'checkpoint-behind-what-was-not-taken',
    tells: 'The checkpoint passes events that wait behind one that can not be read, and they are never applied.',
    file: 'src/engine/pages.ts',
    find: `    return [outcome, await this.#tenure.commit(this.#commitOf(outcome, taken)), taken]`,
    replace: `    return [outcome, await this.#tenure.commit(this.#commitOf(outcome, page)), page]`,
    suite: ownKey,
  },
  {
    name: 'edited-into-a-row-that-is-ahead',
    tells: 'An edit that gives an event another row applies it after later events of that row.',
    file: 'src/engine/work.ts',
    find: `    return row.position > item.record.position ? rowAhead(row, item.record) : this.#apply(item, row)`,
    replace: `    return this.#apply(item, row)`,
    suite: ownKey,
  },
  {
    name: 'dry-run-knows-no-order',
    tells: 'A dry run says that an edited event passes, and the redrive parks it.',
    file: 'src/operator/dry-fold.ts',
    find: `    if (key !== lane && row.folding.position > record.position)`,
    replace: `    if (key === lane && row.folding.position > record.position)`,
    suite: ownKey,
  },
  {
    name: 'partition-goes-on-behind-a-letter',
    tells: 'Where the order of the partition is kept, later events are handled while the one before them is parked.',
    file: 'src/engine/handling/verdicts.ts',
    find: `        tracks.bar(wholePartition)
        if (flow`,
    replace: `        if (flow`,
    suite: partitionOrder,
  },
  {
    name: 'partition-goes-on-after-a-restart',
    tells: 'The next owner of a partition that a parked event blocks begins behind that event.',
    file: 'src/engine/handling/desk.ts',
    find: `  if (heldUpBy(parts.subscription, partition.held)) tracks.bar(wholePartition)`,
    replace: ``,
    suite: partitionOrder,
  },
  {
    name: 'partition-never-goes-on',
    tells: 'A partition stays blocked after the event that blocked it was discarded.',
    file: 'src/engine/handling/group-commit.ts',
    find: `    if (partition.held.size === 0 && !ledger.hasLanes) tracks.unbar(wholePartition)`,
    replace: `    if (partition.held.size > 0 && !ledger.hasLanes) tracks.unbar(wholePartition)`,
    suite: partitionOrder,
  },
  {
    name: 'partition-goes-on-before-it-was-stored',
    tells:
      'What comes behind a discarded event is handled before the store has that, and again behind it after a death.',
    file: 'src/engine/handling/group-commit.ts',
    find: `    if (partition.held.size === 0 && !ledger.hasLanes) tracks.unbar(wholePartition)`,
    replace: `    if (partition.held.size === 0) tracks.unbar(wholePartition)`,
    suite: ['src/engine/handling/group-commit.test.ts'],
  },
  {
    name: 'a-redrive-looks-like-a-retry',
    tells: 'A handler can not tell that an operator has it run again.',
    file: 'src/engine/handling/attempts.ts',
    find: `      redrive: isLetter ? partition.held.get(lane)?.redrive : undefined,`,
    replace: `      redrive: undefined,`,
    suite: partitionOrder,
  },
  {
    name: 'lanes-on-their-way-are-not-due',
    tells: 'drain() returns while the letters of a lane whose time has come are being loaded.',
    file: 'src/engine/handling/loop.ts',
    find: `    if (draining.size > 0 || this.#drains.isLoading || redriving.isTold) return true`,
    replace: `    if (draining.size > 0 || redriving.isTold) return true`,
    suite: ['src/engine/handling/loop.test.ts'],
  },
  {
    name: 'questions-starve-the-loop',
    tells: 'While a program asks for the status in a loop, no timer and no signal of its process gets its turn.',
    file: 'src/sqlite/turns.ts',
    find: `      return answer instanceof Promise ? this.#settle(answer) : answer`,
    replace: `      return answer`,
    suite: ['test/regressions/questions-do-not-starve-the-loop.test.ts'],
  },
]

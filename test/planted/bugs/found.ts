import type { Bug } from '../bug.ts'

/** What the simulator found, put back. */
export const foundBugs: readonly Bug[] = [
  {
    name: 'judged-twice',
    tells:
      'An event that was parked for deaths and let go by a person is accused again by the process that parked it; when the store has set that right, what speaks for its neighbours is forgotten with it.',
    file: 'src/engine/crash/suspicion.ts',
    find: `    if (this.#trials.length === 0 || this.#judged.has(position)) return undefined`,
    replace: `    if (this.#trials.length === 0) return undefined`,
    suite: ['src/engine/crash/suspicion.test.ts'],
  },
  {
    name: 'acquitted-of-everything',
    tells:
      'A process that gives one partition back and then dies over an event in another leaves no trace of that, and the event kills the next.',
    file: 'src/sqlite/subscription/trials.ts',
    find: `WHERE subscription = ? AND partition = ? AND instance = ?'`,
    replace: `WHERE length(?) > 0 AND ? >= 0 AND instance = ?'`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'due-by-the-clock-of-a-process',
    tells: 'A process whose clock is a day ahead holds a lane, and whoever comes after it waits for a day.',
    file: 'src/engine/handler/verdicts.ts',
    find: `    const dueAt = Math.ceil(partition.now() + delayMs)`,
    replace: `    const dueAt = Math.ceil(clock.now() + delayMs)`,
    suite: ['test/sim/sim.test.ts'],
  },
  {
    name: 'projection-spins-until-it-may-begin',
    tells: 'A projection that waits for another subscription to be alone takes a whole core meanwhile.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    const canBegin = !this.#ownership.pause && !this.#isWaiting`,
    replace: `    const canBegin = !this.#ownership.pause`,
    suite: ['test/sim/sim.test.ts'],
  },
  {
    name: 'handler-spins-until-it-may-begin',
    tells: 'A handler that has to be alone, or waits for another one that has to, takes a whole core meanwhile.',
    file: 'src/engine/handler/handler-loop.ts',
    find: `    const canBegin = !this.#attempts.isTurnedAway`,
    replace: `    const canBegin = true`,
    suite: ['test/sim/sim.test.ts'],
  },
  {
    name: 'probe-spins-behind-a-slow-redrive',
    tells:
      'A handler whose breaker lets a probe through, and whose lanes all have to wait for their turn in a slow redrive, takes a whole core.',
    file: 'src/engine/handler/handler-loop.ts',
    find: `(probeAt > now || tracks.peek(now) !== undefined))`,
    replace: `(probeAt > now || tracks.size > 0))`,
    suite: ['test/sim/sim.test.ts'],
  },
  {
    name: 'decision-lost-by-two-switches',
    tells:
      'What a person discarded is applied after all, when another version becomes the live one twice before anybody has come to leave it out.',
    file: 'src/sqlite/rebuild/rebuild.ts',
    find: ` OR (l.ended_at IS NULL AND l.ended_by IS NOT NULL))\``,
    replace: `)\``,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'idle-transaction-ended-within-a-statement',
    tells:
      'Whoever simulates is told of two owners of one partition: the server in memory takes a page by what was there before somebody else claimed.',
    file: 'src/testing/memory/server.ts',
    find: `    return this.#locks.get(name)
  }

  #endIdle(): void {
    for (const tx of this.#begun) if (this.#isIdle(tx)) this.rollback(tx)
  }`,
    replace: `    const holder = this.#locks.get(name)
    if (!holder || !this.#isIdle(holder)) return holder
    this.rollback(holder)
    return this.holderOf(name)
  }

  #endIdle(): void {}`,
    suite: ['src/testing/memory/server.test.ts'],
  },
  {
    name: 'begun-before-the-head-was-left-out',
    tells:
      'What comes after a discarded event has its effect while the store still holds that one: who takes the discard back gets the two in the wrong order.',
    file: 'src/engine/handler/handler-loop.ts',
    find: `    return !this.#isLettingFlow && this.#state`,
    replace: `    return this.#state`,
    suite: ['test/engine/handler-redrive.test.ts'],
  },
  {
    name: 'begun-after-its-lease',
    tells:
      'An attempt waits for its breaker until its lease has run out, and is begun then, while another process may be making the same call.',
    file: 'src/engine/handler/attempts.ts',
    find: `    if (!running.has(entry) || this.#isHalted) return unlearned(() => verdicts.putOff(track, entry))`,
    replace: `    if (!running.has(entry)) return unlearned(() => verdicts.putOff(track, entry))`,
    suite: ['src/engine/handler/attempts.test.ts', 'test/sim/sim.test.ts'],
  },
  {
    name: 'forgotten-behind-a-gap',
    tells:
      'A process that takes over while a gap in the log hides the event that killed the others takes it for granted that nothing did, and the count begins anew.',
    file: 'src/engine/handler/handler-loop.ts',
    find: `    const isAtEnd = parts.subscription.source !== undefined && this.#intake.isAtEnd`,
    replace: `    const isAtEnd = this.#intake.isAtEnd`,
    suite: ['src/engine/handler/handler-loop.test.ts', 'test/sim/sim.test.ts'],
  },
  {
    name: 'page-forgotten-behind-a-gap',
    tells: 'The same of a projection: whoever can not see the page that killed the others forgets that they died.',
    file: 'src/engine/projection/page-loop.ts',
    find: ` || !this.#isRead(ownership.seen)`,
    replace: ``,
    suite: ['src/engine/projection/page-loop.test.ts'],
  },
]

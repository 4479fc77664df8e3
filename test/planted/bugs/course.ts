import type { Bug } from '../bug.ts'

/** Small mistakes on the way from the first attempt to the outcome: order, delays, counts, frozen sets. */
export const courseBugs: readonly Bug[] = [
  {
    name: 'parked-lane-stays-in-its-redrive',
    tells:
      'A lane that failed in a redrive belongs to it for ever, and a later redrive of it counts for the one before.',
    file: 'src/engine/outcome/ledger.ts',
    find: `    const redrive = holding.status === 'retrying' ? before?.redrive : undefined`,
    replace: `    const redrive = holding.status === 'waiting' ? undefined : before?.redrive`,
    suite: ['src/engine/outcome/ledger.test.ts', 'test/engine/handler-redrive.test.ts'],
  },
  {
    name: 'redriven-letter-shown-as-parked',
    tells: 'An operator sees a letter as parked while it is tried, and discards what is just being handled.',
    file: 'src/engine/outcome/ledger.ts',
    find: `    if (act === 'redrive' || act === 'skip') this.#changes.push({ change: 'status', position, status: 'retrying' })
    else this.leaveOut`,
    replace: `    if (act !== 'redrive' && act !== 'skip') this.leaveOut`,
    suite: ['src/engine/outcome/ledger.test.ts'],
  },
  {
    name: 'retries-in-place-not-in-the-letter',
    tells: 'A letter says that an event failed once, and it was called three times.',
    file: 'src/engine/outcome/ledger.ts',
    find: `    this.#failed(record, more, holding.status)`,
    replace: `    this.#failed(record, more.slice(more.length), holding.status)`,
    suite: ['src/engine/outcome/ledger.test.ts', 'test/engine/handler.test.ts'],
  },
  {
    name: 'next-letter-inherits-the-tries',
    tells: 'The letter behind one that failed often has fewer tries than its policy gives it.',
    file: 'src/engine/outcome/ledger.ts',
    find: `      const { sequence: head, position: headPosition } = next
      this.#hang({ lane,`,
    replace: `      const { sequence: head, position: headPosition } = next
      this.#hang({ ...before, lane,`,
    suite: ['src/engine/outcome/ledger.test.ts'],
  },
  {
    name: 'redriven-letter-keeps-its-tries',
    tells: 'What an operator redrives has its tries used up already.',
    file: 'src/engine/outcome/ledger.ts',
    find: `    this.#hang({ lane, status: 'retrying', since, done: doneNow, head, headPosition, redrive })`,
    replace: `    this.#hang({ ...this.#held.get(lane), lane, status: 'retrying', since, done: doneNow, head, headPosition, redrive })`,
    suite: ['src/engine/outcome/ledger.test.ts', 'test/engine/handler-redrive.test.ts'],
  },
  {
    name: 'retry-after-half-of-its-delay',
    tells: 'A service that needs a rest is called again after half of what the policy says.',
    file: 'src/engine/handler/verdicts.ts',
    find: `Math.ceil(partition.now() + delayMs)`,
    replace: `Math.ceil(partition.now() + delayMs / 2)`,
    suite: ['src/engine/handler/verdicts.test.ts', 'test/engine/handler-policy.test.ts'],
  },
  {
    name: 'retry-long-after-its-delay',
    tells: 'An event that should be tried again in a second waits for several.',
    file: 'src/engine/handler/verdicts.ts',
    find: `Math.ceil(partition.now() + delayMs)`,
    replace: `Math.ceil(partition.now() + delayMs * 4)`,
    suite: ['src/engine/handler/verdicts.test.ts', 'test/engine/handler-policy.test.ts'],
  },
  {
    name: 'due-lanes-at-once-after-a-restart',
    tells: 'Every restart calls a service that asked for a rest, with all that waits for it.',
    file: 'src/engine/held/due-lanes.ts',
    find: `this.add(lane, dueAt - before)`,
    replace: `this.add(lane, Math.min(dueAt - before, 0))`,
    suite: ['src/engine/held/due-lanes.test.ts'],
  },
  {
    name: 'standstill-without-its-wait',
    tells: 'A partition that stands still asks again at once, in a service that has just failed.',
    file: 'src/engine/handler/flow.ts',
    find: `    const probeAt = clock.mono() + delayMs
`,
    replace: `    const probeAt = clock.mono() + Math.min(delayMs, 1)
`,
    suite: ['src/engine/handler/flow.test.ts'],
  },
  {
    name: 'one-try-less-than-the-policy',
    tells: 'An event is parked one try too early.',
    file: 'src/failure/decide.ts',
    find: `if (tries < action.attempts) return`,
    replace: `if (tries < action.attempts - 1) return`,
    suite: ['src/failure/policy.test.ts'],
  },
  {
    name: 'discard-lets-the-queue-pass',
    tells: 'Who discards one letter loses all that stand behind it.',
    file: 'src/engine/handler/redrive-start.ts',
    find: `ledger.advance(lane, second === 'none' ? undefined : second)`,
    replace: `ledger.advance(lane, undefined)`,
    suite: ['src/engine/handler/redrive-start.test.ts', 'test/engine/handler-redrive.test.ts'],
  },
  {
    name: 'healed-lane-not-taken-up',
    tells: 'A lane whose missing version came stays held until the next restart.',
    file: 'src/engine/projection/held-lane-batches.ts',
    find: `      if (hold?.status === 'retrying') this.#due.add(lane)
      else this.#careful`,
    replace: `      if (hold?.status === 'retrying' && isBatch) this.#due.add(lane)
      else this.#careful`,
    suite: ['src/engine/projection/held-lane-batches.test.ts', 'test/engine/gaps.test.ts'],
  },
  {
    name: 'parked-lanes-taken-up-after-a-reload',
    tells:
      'After a commit whose answer was lost, everything that is parked is tried again, although no operator asked for it.',
    file: 'src/engine/projection/held-lane-batches.ts',
    find: `if (status === 'retrying') this.#due.add(lane)
    this.redriving`,
    replace: `if (status !== 'waiting') this.#due.add(lane)
    this.redriving`,
    suite: ['src/engine/projection/held-lane-batches.test.ts'],
  },
  {
    name: 'standstill-that-asks-as-often-as-at-first',
    tells: 'A service that is away for hours is called every second, as in the first minute.',
    file: 'src/engine/handler/flow.ts',
    find: `standing.backoff.delayMs(standing.probes + 1, random)`,
    replace: `standing.backoff.delayMs(1, random)`,
    suite: ['src/engine/handler/flow.test.ts'],
  },
]

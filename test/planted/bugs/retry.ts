import type { Bug } from '../bug.ts'

export const retryBugs: readonly Bug[] = [
  {
    name: 'failed-lane-stays-due',
    tells: 'A lane whose letter failed again is let go again at once, without its pause.',
    file: 'src/engine/projection/held-lane-batches.ts',
    find: `      this.#due.delete(lane)
      if (hold?.status`,
    replace: `      if (!hold) this.#due.delete(lane)
      if (hold?.status`,
    suite: ['src/engine/projection/held-lane-batches.test.ts', 'src/engine/projection/page-loop.test.ts'],
  },
  {
    name: 'bystanders-end-a-block',
    tells:
      'A partition that should stand still at one event goes on, and hammers that event, as soon as anybody else who was under way goes through.',
    file: 'src/engine/handler/flow.ts',
    find: `      if (!this.#standstill.isAnybodys && begunAt < this.#standstill.firstAt) return false
`,
    replace: '',
    suite: ['test/engine/handler-policy.test.ts'],
  },
  {
    name: 'retry-counted-twice',
    tells: 'An event is parked after half of the tries that its policy gives it.',
    file: 'src/engine/handler/verdicts.ts',
    find: `    const { clock } = parts.runtime
    entry.tries++`,
    replace: `    const { clock } = parts.runtime
    entry.tries += 2`,
    suite: ['test/engine/handler.test.ts'],
  },
  {
    name: 'tries-forgotten-by-the-store',
    tells: 'Every restart gives a failing event all its tries again, so that it is never parked.',
    file: 'src/sqlite/letters/letter-writes.ts',
    find: `        hold?.tries ?? null,`,
    replace: `        null,`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'tries-begin-anew-with-every-letter',
    tells: 'A failing event is tried for ever and never parked, so nobody hears of it.',
    file: 'src/engine/handler/held-lane-drain.ts',
    find: `        const tries = i === 0 ? headTries : 0`,
    replace: `        const tries = i === 0 ? Math.min(headTries, 0) : 0`,
    suite: ['test/engine/handler.test.ts'],
  },
  {
    name: 'outage-burns-attempts',
    tells: 'After an outage many healthy events are parked, because they failed too often while nothing worked.',
    file: 'src/engine/handler/verdicts.ts',
    find: `    for (const lane of alike) this.#giveBack(lane)`,
    replace: ``,
    suite: ['test/engine/outage.test.ts'],
  },
  {
    name: 'outage-burns-what-is-under-way',
    tells: 'An event that is just being tried again when an outage is known is parked too soon after it.',
    file: 'src/engine/handler/verdicts.ts',
    find: `    for (const entry of running.keys()) if (entry.lane === lane) entry.tries = 0`,
    replace: ``,
    suite: ['test/engine/outage.test.ts'],
  },
  {
    name: 'block-gives-up',
    tells: 'A full disk is taken for the fault of an event, and the others go on into it.',
    file: 'src/failure/decide.ts',
    find: `        return { decision: 'stop', why: 'block', backoff: action.backoff }`,
    replace: `        return { decision: 'retry', delayMs: action.backoff.delayMs(tries, random) }`,
    suite: ['src/failure/policy.test.ts'],
  },
  {
    name: 'store-failure-blamed-on-the-event',
    tells: 'When the connection breaks in the middle of a page, a healthy event is parked.',
    file: 'src/engine/projection/work.ts',
    find: `      if (error instanceof StoreError) throw error
      if (way`,
    replace: `      if (way`,
    suite: ['test/engine/sql.test.ts'],
  },
  {
    name: 'jitter-down-to-nothing',
    tells: 'Some retries come at once, into a service that has just asked for less.',
    file: 'src/failure/backoff.ts',
    find: `floorMs ?? Math.ceil(delay / 2))`,
    replace: `floorMs ?? 0)`,
    suite: ['src/failure/backoff.test.ts'],
  },
  {
    name: 'class-by-words',
    tells: 'A message that speaks of a blocked account is taken for a lock, and tried again for ever.',
    file: 'src/failure/recognise.ts',
    find: `export function byOurs(error: unknown, now: number): Classified | undefined {`,
    replace: `export function byOurs(error: unknown, now: number): Classified | undefined {
  if (/lock|connection|timeout/i.test(String(field(error, 'message'))))
    return { class: 'transient', rule: 'words', evidence: null }`,
    suite: ['src/failure/classify.test.ts'],
  },
  {
    name: 'retry-after-ignored',
    tells: 'A service that asked to be left alone for an hour is called again after a second.',
    file: 'src/failure/decide.ts',
    find: `  if (leastMs === undefined) return decision`,
    replace: `  if (leastMs !== 0) return decision`,
    suite: ['src/failure/policy.test.ts'],
  },
  {
    name: 'half-an-answer-is-an-error-of-the-program',
    tells: 'A service that is being restarted answers with half a page, and a healthy event is parked.',
    file: 'src/failure/recognise.ts',
    find: `export const bugs = ['TypeError',`,
    replace: `export const bugs = ['SyntaxError', 'TypeError',`,
    suite: ['src/failure/classify.test.ts'],
  },
  {
    name: 'gravest-of-several-overlooked',
    tells:
      'Of several failures at once the one that will never go away is overlooked, and the event is tried for ever.',
    file: 'src/failure/classify.ts',
    find: `const byGravity = ['permanent', 'infrastructure', 'dependency', 'unknown', 'transient'] as const`,
    replace: `const byGravity = ['transient', 'infrastructure', 'dependency', 'unknown', 'permanent'] as const`,
    suite: ['src/failure/classify.test.ts'],
  },
  {
    name: 'late-answer-after-the-timeout',
    tells: 'A handler that hangs holds up its lane for ever.',
    file: 'src/engine/handler/deadlines.ts',
    find: `      if (until > now) return
      this.#attempts.delete(attempt)
      attempt.giveUp(`,
    replace: `      if (until > now) return
      this.#attempts.delete(attempt)
      void (`,
    suite: ['test/engine/handler.test.ts'],
  },
]

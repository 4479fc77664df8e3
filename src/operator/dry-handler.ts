import type { DeadLetter } from '../dead-letter/letter.ts'
import { Attempt, type AttemptResult } from '../engine/handler/attempt.ts'
import { readEvent, recordOf, relevanceOf } from '../subscription/interpret.ts'
import type { Event } from '../event/event.ts'
import { classify } from '../failure/classify.ts'
import { describeFailure } from '../failure/failure.ts'
import { failure as said } from '../failure/said.ts'
import type { Handler, HandlerContext, HandlerFunction, HandlerLogger } from '../handler/handler.ts'
import { fromMs } from '../runtime/duration.ts'
import type { DryOutcome, LaneTrial, TrialResult } from './dry-run.ts'

const silent: HandlerLogger = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** Calls the handler only if it has `dryRun`: the side effects of any other handler can't be undone. */
export async function dryHandler(trial: LaneTrial, handler: Handler): Promise<TrialResult> {
  const outcomes: DryOutcome[] = []
  for (const letter of trial.letters) {
    if (trial.signal?.aborted) break
    const outcome = await handle(trial, handler, letter)
    outcomes.push(outcome)
    if (outcome.outcome === 'failed') break
  }
  return { outcomes, changes: [] }
}

async function handle(trial: LaneTrial, handler: Handler, letter: DeadLetter): Promise<DryOutcome> {
  const { subscription, parts } = trial
  const record = recordOf(letter)
  const relevance = relevanceOf(subscription, record)
  if (typeof relevance !== 'function' && !(relevance === 'unknown' && subscription.unknown === 'hold'))
    return { outcome: 'ignored', why: 'it is not subscribed to' }
  const { event, failure: unreadable } = await readEvent(subscription, record)
  if (!event) return { outcome: 'failed', failure: unreadable, effects: [] }
  const idempotencyKey = `${subscription.name}/${event.id}`
  if (!handler.dryRun) return { outcome: 'would be called', idempotencyKey }
  const effects: string[] = []
  const result = await attempt(trial, handler, letter, event, relevance as HandlerFunction, effects)
  if (result.result === 'succeeded') return { outcome: 'handled', idempotencyKey, effects }
  const found = classify(result.error, handler.failure.rules, parts.runtime.clock.now())
  if (found.skip !== undefined) return { outcome: 'ignored', why: `the handler skips it: ${found.skip}` }
  return {
    outcome: 'failed',
    failure: describeFailure(result.error, found.class, found.rule, found.evidence),
    effects,
  }
}

async function attempt(
  { subscription, parts, signal }: LaneTrial,
  handler: Handler,
  letter: DeadLetter,
  event: Event,
  work: HandlerFunction,
  effects: string[],
): Promise<AttemptResult> {
  const { clock, timers } = parts.runtime
  const trying = new Attempt()
  const ctx: HandlerContext = {
    subscription: subscription.name,
    get signal() {
      return trying.signal
    },
    attempt: letter.attemptsTotal + 1,
    idempotencyKey: `${subscription.name}/${event.id}`,
    deadline: clock.now() + handler.timeoutMs,
    redrive: undefined,
    logger: silent,
    dryRun: true,
    effect: async (what) => {
      effects.push(what)
      return undefined
    },
  }
  const isOver = new AbortController()
  const giveUp = () => trying.giveUp(signal?.reason)
  signal?.addEventListener('abort', giveUp, { once: true })
  const timeOut = async () => {
    await timers.sleep(handler.timeoutMs, isOver.signal)
    if (!isOver.signal.aborted)
      trying.giveUp(said.transient(`The handler did not end within ${fromMs(handler.timeoutMs)}.`))
  }
  void timeOut()
  try {
    return await trying.run(work, event, ctx)
  } finally {
    signal?.removeEventListener('abort', giveUp)
    isOver.abort()
  }
}

import type { Redrive } from './redrive.ts'

/** A redrive as far as its next stage depends on it. */
export interface Stage extends Pick<Redrive, 'lanes' | 'admitted' | 'stages' | 'maxFailures'> {
  /** How many lanes failed, and how many wait for an open breaker. */
  readonly failed: number
  readonly deferred: number
  /** Whether all lanes that may be begun have their end. */
  readonly isOver: boolean
}

export type NextStage =
  | { readonly next: 'wait' }
  /** How many lanes there may be in all from now on. */
  | { readonly next: 'admit'; readonly admitted: number }
  | { readonly next: 'end'; readonly status: 'done' | 'stopped'; readonly reason: string | undefined }

/**
 * How a running redrive goes on:
 *
 *     more lanes failed or deferred than it may have  ──► stopped, also in the middle of a stage
 *     the stage is not over                           ──► wait
 *     lanes are left                                  ──► the next stage
 *     all have their end, and some are deferred       ──► stopped: `done` means processed
 *     all have their end                              ──► done
 *
 * A deferred lane counts like a failed one: a canary does not go on over an open breaker.
 */
export function nextStage({ lanes, admitted, stages, maxFailures, failed, deferred, isOver }: Stage): NextStage {
  if (maxFailures !== undefined && failed + deferred > maxFailures)
    return stopped(`${unprocessed(failed, deferred)}, and it may have ${maxFailures}`)
  if (!isOver) return { next: 'wait' }
  if (admitted < lanes) {
    const next = stages.find((stage) => stage > admitted) ?? lanes
    return { next: 'admit', admitted: Math.min(next, lanes) }
  }
  if (deferred === 0) return { next: 'end', status: 'done', reason: undefined }
  return stopped(
    deferred === 1
      ? '1 lane waits for an open breaker and continues when it closes'
      : `${deferred} lanes wait for an open breaker and continue when it closes`,
  )
}

function unprocessed(failed: number, deferred: number): string {
  const failures = `${failed} ${failed === 1 ? 'lane' : 'lanes'} failed`
  const waits = deferred === 1 ? '1 waits for an open breaker' : `${deferred} wait for an open breaker`
  if (deferred === 0) return failures
  return failed === 0
    ? `${deferred} ${deferred === 1 ? 'lane waits' : 'lanes wait'} for an open breaker`
    : `${failures}, ${waits}`
}

function stopped(reason: string): NextStage {
  return { next: 'end', status: 'stopped', reason }
}

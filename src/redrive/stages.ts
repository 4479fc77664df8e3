import type { Redrive } from './redrive.ts'

/** The state of a redrive that its next stage depends on. */
export interface Stage extends Pick<Redrive, 'lanes' | 'admitted' | 'stages' | 'maxFailures'> {
  /** Failed lanes. `deferred`: lanes that wait for an open breaker. */
  readonly failed: number
  readonly deferred: number
  /** Whether all admitted lanes have ended. */
  readonly isOver: boolean
}

export type NextStage =
  | { readonly next: 'wait' }
  /** The new total of lanes that may be started. */
  | { readonly next: 'admit'; readonly admitted: number }
  | { readonly next: 'end'; readonly status: 'done' | 'stopped'; readonly reason: string | undefined }

/**
 * The next step of a running redrive:
 *
 *     more lanes failed or deferred than `maxFailures`  ──► stopped, also in the middle of a stage
 *     the stage has not ended                           ──► wait
 *     lanes are left                                    ──► the next stage
 *     all lanes ended, some deferred                    ──► stopped
 *     all lanes ended                                   ──► done
 *
 * `done` means that every lane was tried and its outcome recorded; the counts tell how many failed. A deferred lane counts as failed: a canary stops at an open breaker.
 */
export function nextStage({ lanes, admitted, stages, maxFailures, failed, deferred, isOver }: Stage): NextStage {
  if (maxFailures !== undefined && failed + deferred > maxFailures)
    return stopped(`${unprocessed(failed, deferred)}, and maxFailures is ${maxFailures}`)
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

import { describe, expect, it } from 'vitest'
import { nextStage, type Stage } from './stages.ts'

const stage = (given: Partial<Stage>): Stage => ({
  lanes: 10,
  admitted: 10,
  stages: [],
  maxFailures: undefined,
  failed: 0,
  deferred: 0,
  isOver: true,
  ...given,
})

describe('the next stage of a redrive', () => {
  it('waits until the lanes of this one have their end', () => {
    expect(nextStage(stage({ isOver: false }))).toEqual({ next: 'wait' })
    expect(nextStage(stage({ isOver: false, failed: 3, deferred: 2 }))).toEqual({ next: 'wait' })
    expect(nextStage(stage({ isOver: false, failed: 3, deferred: 2, maxFailures: 5 }))).toEqual({ next: 'wait' })
  })

  it('begins with so many more, and ends with all of them', () => {
    const canary = { stages: [1, 3, 8] }
    expect(nextStage(stage({ ...canary, admitted: 1 }))).toEqual({ next: 'admit', admitted: 3 })
    expect(nextStage(stage({ ...canary, admitted: 3 }))).toEqual({ next: 'admit', admitted: 8 })
    expect(nextStage(stage({ ...canary, admitted: 8 }))).toEqual({ next: 'admit', admitted: 10 })
    expect(nextStage(stage({ ...canary, admitted: 3, lanes: 5 }))).toEqual({ next: 'admit', admitted: 5 })
    expect(nextStage(stage({ ...canary, admitted: 1, failed: 1 }))).toEqual({ next: 'admit', admitted: 3 })
    expect(nextStage(stage(canary))).toEqual({ next: 'end', status: 'done', reason: undefined })
  })

  it('is done when all have their end, also where some failed', () => {
    expect(nextStage(stage({ failed: 10 }))).toEqual({ next: 'end', status: 'done', reason: undefined })
    expect(nextStage(stage({ failed: 2, maxFailures: 2 }))).toMatchObject({ status: 'done' })
  })

  it('stops where lanes wait for an open breaker: they are not processed', () => {
    expect(nextStage(stage({ deferred: 3, failed: 1 }))).toEqual({
      next: 'end',
      status: 'stopped',
      reason: '3 lanes wait for an open breaker and continue when it closes',
    })
    expect(nextStage(stage({ deferred: 1 }))).toMatchObject({
      reason: '1 lane waits for an open breaker and continues when it closes',
    })
  })

  it('stops in the middle of one when too many failed or wait, and says so', () => {
    const reasonOf = (failed: number, deferred: number, maxFailures: number) =>
      nextStage(stage({ failed, deferred, maxFailures, isOver: false, admitted: 1 }))
    expect(reasonOf(1, 0, 0)).toEqual({
      next: 'end',
      status: 'stopped',
      reason: '1 lane failed, and maxFailures is 0',
    })
    expect(reasonOf(2, 0, 1)).toMatchObject({ reason: '2 lanes failed, and maxFailures is 1' })
    expect(reasonOf(0, 1, 0)).toMatchObject({ reason: '1 lane waits for an open breaker, and maxFailures is 0' })
    expect(reasonOf(0, 2, 1)).toMatchObject({ reason: '2 lanes wait for an open breaker, and maxFailures is 1' })
    expect(reasonOf(2, 1, 2)).toMatchObject({
      reason: '2 lanes failed, 1 waits for an open breaker, and maxFailures is 2',
    })
    expect(reasonOf(1, 2, 2)).toMatchObject({
      reason: '1 lane failed, 2 wait for an open breaker, and maxFailures is 2',
    })
  })
})

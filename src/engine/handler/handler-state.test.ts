import { describe, expect, it } from 'vitest'
import { createDeskOf, type DeskSetup, heldLane } from '../../../test/handler-state.ts'
import { createHandlerState } from './handler-state.ts'

/** As it is set up for who takes the partition over. */
function takenOver(
  state: { readonly tried?: number | undefined; readonly trials?: readonly number[] },
  setup: DeskSetup = {},
) {
  const { parts, handler, partition } = createDeskOf(setup).handlerState
  const { tried, trials = [] } = state
  const found = { ...parts.state, tried, trials: trials.map((position) => ({ position, instance: 'dead' })) }
  return createHandlerState({ ...parts, state: found, isInherited: true, end: 7 }, handler, partition)
}

describe('the state of a handler', () => {
  it('has room for one where the order of the partition is kept', () => {
    expect(createDeskOf({ definition: { concurrency: 5 } }).handlerState.flow.limit()).toBe(5)
    expect(createDeskOf({ definition: { concurrency: 5, order: 'partition' } }).handlerState.flow.limit()).toBe(1)
  })

  it('suspects what may have been begun, which is no more than there is', () => {
    expect([undefined, 3, 100].map((tried) => takenOver({ tried }).suspects.upTo)).toEqual([0, 3, 7])
  })

  it('follows those over which somebody died, if they are tried again by themselves', () => {
    const held = [
      heldLane('a', { headPosition: 1, dueAt: 0 }),
      heldLane('b', { headPosition: 2, status: 'waiting', breaker: 'bank' }),
      heldLane('c', { headPosition: 3, status: 'parked' }),
      heldLane('d', { headPosition: 4, dueAt: 0 }),
    ]
    const { suspicion } = takenOver({ trials: [1, 2, 3] }, { held })
    expect([1, 2, 3, 4].filter((position) => suspicion.follows(position))).toEqual([1, 2])
  })
})

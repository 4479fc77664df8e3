import type { Handler } from '../../handler/handler.ts'
import type { Projection } from '../../projection/projection.ts'
import type { OutsideWatch } from './outside.ts'

/** The same consumer, whose functions are watched. */
export function watchedProjection<P extends Projection>(projection: P, watch: OutsideWatch): P {
  const { initial, keyOf, reducers } = projection
  return {
    ...projection,
    initial: watched(initial, watch),
    keyOf: keyOf && watched(keyOf, watch),
    reducers: new Map(Array.from(reducers, ([type, reducer]) => [type, watched(reducer, watch)])),
  }
}

export function watchedHandler<H extends Handler>(handler: H, watch: OutsideWatch): H {
  const { functions } = handler
  return { ...handler, functions: new Map(Array.from(functions, ([type, work]) => [type, watched(work, watch)])) }
}

export function watched<Args extends unknown[], Result>(
  work: (...args: Args) => Result,
  watch: OutsideWatch,
): (...args: Args) => Result {
  return (...args) => watch.run(() => work(...args))
}

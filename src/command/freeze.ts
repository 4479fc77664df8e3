import { HoldfastError } from '../errors.ts'
import { className, isPlain, isPlainArray } from '../event/json.ts'

/**
 * Freezes a state. A command folds its own events before they are written, and decides again on the same state after a conflict:
 * a fold or a decision that changed the state in place would leave changes that never happened.
 *
 * Frozen parts are not visited again, so a fold that shares most of its state only pays for the new part.
 */
export function freezeState(value: unknown, path = 'state'): void {
  if (typeof value === 'function' || typeof value === 'symbol') throw badState(path, `a ${typeof value}`)
  if (typeof value !== 'object' || value === null) return
  const isList = Array.isArray(value)
  if (!(isList ? isPlainArray(value) : isPlain(value))) throw badState(path, `an instance of ${className(value)}`)
  if (Object.isFrozen(value)) return
  Object.freeze(value)
  if (isList) for (const [i, child] of value.entries()) freezeState(child, `${path}[${i}]`)
  else for (const [key, child] of Object.entries(value)) freezeState(child, `${path}.${key}`)
}

function badState(path: string, what: string): HoldfastError {
  const hint =
    what === 'an instance of Promise'
      ? 'A fold must be synchronous: do asynchronous work in decide, and put the result in the event.'
      : 'Use plain objects, arrays and values: they can be frozen, so that a decision can be repeated.'
  return new HoldfastError('FOLD_STATE', `The fold returned a state in which ${path} is ${what}.`, { hint })
}

import { standIn } from '../kit/world.ts'
import type { Link } from '../link.ts'
import type { Outside } from './app.ts'
import type { Place } from './network.ts'
import type { Process } from './process.ts'
import type { Schedule } from './schedule.ts'

/** The services that handlers call. */
export function servicePlace(isUp: () => boolean): Place {
  return {
    name: 'the service',
    isLocal: false,
    isReal: false,
    isUp,
    unavailable: () => Object.assign(new Error('The service cannot be reached.'), { code: 'ECONNREFUSED' }),
    busy: () => Object.assign(new Error('The service is busy.'), { status: 503 }),
  }
}

/** How a process reaches it. */
export function outsideOf(process: Process, schedule: Schedule, link: Link, kill: () => void): Outside {
  const call: Outside['call'] = (what, effect, signal) => orAborted(link.call(`outside.${what}`, effect), signal)
  return {
    name: process.name,
    nowMs: () => schedule.now,
    call,
    reach: (dependency) =>
      standIn(
        dependency,
        (work, name) =>
          (...args) =>
            call(name, () => work(...args)),
      ),
    die: () => {
      kill()
      return new Promise(() => undefined)
    },
  }
}

/** For reading the definition of an app without running it. */
export const nowhere: Outside = {
  name: 'none',
  nowMs: () => 0,
  call: () => new Promise(() => undefined),
  reach: (dependency) => dependency,
  die: () => new Promise(() => undefined),
}

function orAborted<T>(call: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return call
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason as Error)
    // Its answer is not awaited any more.
    call.catch(() => undefined)
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    call.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

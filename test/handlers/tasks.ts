import { defineEvents, type StandardSchema } from 'holdfast'

/**
 * What an event makes of whoever applies it:
 *
 *     go      has its effect
 *     refuse  fails every time
 *     exit    ends the process
 *     heap    takes all memory, until the process ends
 *     loop    never gives the thread back
 */
const acts = ['go', 'refuse', 'exit', 'heap', 'loop'] as const
export type Act = (typeof acts)[number]

export interface Task {
  readonly act: Act
  /** How often it fails before that, by a fault that passes. Only a handler tries again. */
  readonly hiccups: number
  /** How long the effect takes. */
  readonly ms: number
  /** Who is to act so; the others just go. Everybody unless it says. */
  readonly who?: string
}

// By hand: these processes start hundreds of times, and a schema library would be most of their start.
const task: StandardSchema<Task> = {
  '~standard': {
    version: 1,
    vendor: 'handler-tests',
    validate: (value) => {
      const { act, hiccups, ms } = (value ?? {}) as Task
      const isTask = acts.includes(act) && Number.isSafeInteger(hiccups) && Number.isSafeInteger(ms)
      return isTask ? { value: value as Task } : { issues: [{ message: 'is no task' }] }
    },
  },
}

export const taskEvents = defineEvents({ Asked: task })

/** What an event does to the process. Returns only if that is nothing. */
export function perform(what: Act): void {
  if (what === 'exit') process.exit(1)
  if (what === 'heap') for (const hoard: string[][] = []; ; ) hoard.push(Array.from({ length: 10_000 }, () => 'more'))
  if (what === 'loop') for (;;);
}

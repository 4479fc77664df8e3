import type { JsonChange } from '../event/diff.ts'

export interface Revised {
  readonly number: number
  /** From what was tried until now to what is tried from now on. */
  readonly changes: readonly JsonChange[]
}

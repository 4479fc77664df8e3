import { ground } from './0001-ground.ts'
import { handlers } from './0002-handlers.ts'
import { redrives } from './0003-redrives.ts'
import { rebuild } from './0004-rebuild.ts'
import { attempts } from './0005-attempts.ts'
import { orders } from './0006-orders.ts'
import { deferred } from './0007-deferred.ts'
import { wholeLanes } from './0008-whole-lanes.ts'

export interface Migration {
  readonly name: string
  /** `schema` is quoted. */
  readonly sql: (schema: string) => string
}

/** In order; the number of a migration is its place here. One that was released is never changed: add another. */
export const migrations: readonly Migration[] = [
  { name: 'ground', sql: ground },
  { name: 'handlers', sql: handlers },
  { name: 'redrives', sql: redrives },
  { name: 'rebuild', sql: rebuild },
  { name: 'attempts', sql: attempts },
  { name: 'orders', sql: orders },
  { name: 'deferred', sql: deferred },
  { name: 'whole-lanes', sql: wholeLanes },
]

import { ground } from './0001-ground.ts'
import { partitions } from './0002-partitions.ts'
import { handlers } from './0003-handlers.ts'
import { redrives } from './0004-redrives.ts'
import { rebuild } from './0005-rebuild.ts'
import { attempts } from './0006-attempts.ts'
import { orders } from './0007-orders.ts'
import { deferred } from './0008-deferred.ts'
import { wholeLanes } from './0009-whole-lanes.ts'

export interface Migration {
  readonly name: string
  readonly sql: string
}

/** In order; the number of a migration is its place here. One that was released is never changed: add another. */
export const migrations: readonly Migration[] = [
  { name: 'ground', sql: ground },
  { name: 'partitions', sql: partitions },
  { name: 'handlers', sql: handlers },
  { name: 'redrives', sql: redrives },
  { name: 'rebuild', sql: rebuild },
  { name: 'attempts', sql: attempts },
  { name: 'orders', sql: orders },
  { name: 'deferred', sql: deferred },
  { name: 'whole-lanes', sql: wholeLanes },
]

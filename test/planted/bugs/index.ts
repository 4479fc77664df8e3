import type { Bug } from '../bug.ts'
import { actBugs } from './acts.ts'
import { auditBugs } from './audit.ts'
import { blockedBugs } from './blocked.ts'
import { breakerBugs } from './breaker.ts'
import { checkpointBugs } from './checkpoint.ts'
import { courseBugs } from './course.ts'
import { deathBugs } from './deaths.ts'
import { failureBugs } from './failures.ts'
import { foundBugs } from './found.ts'
import { idempotencyBugs } from './idempotency.ts'
import { leaseBugs } from './leases.ts'
import { letterBugs } from './letters.ts'
import { orderBugs } from './order.ts'
import { rebuildBugs } from './rebuild.ts'
import { redriveBugs } from './redrive.ts'
import { retryBugs } from './retry.ts'

export const bugs: readonly Bug[] = [
  ...checkpointBugs,
  ...letterBugs,
  ...leaseBugs,
  ...deathBugs,
  ...orderBugs,
  ...blockedBugs,
  ...retryBugs,
  ...failureBugs,
  ...breakerBugs,
  ...idempotencyBugs,
  ...redriveBugs,
  ...rebuildBugs,
  ...auditBugs,
  ...actBugs,
  ...foundBugs,
  ...courseBugs,
]

import type { Store } from '../../store.ts'
import { auditCases } from './audit.ts'
import { breakerCases } from './breaker.ts'
import { commitCases } from './commit.ts'
import type { World } from './fixtures.ts'
import { inboxCases } from './inbox.ts'
import { incidentCases } from './incident.ts'
import { laneCases } from './lane.ts'
import { leaseCases } from './lease.ts'
import { logCases } from './log.ts'
import { performCases } from './perform.ts'
import { policyCases } from './policy.ts'
import { rebuildCases } from './rebuild.ts'
import { redriveCases } from './redrive.ts'
import { refusalCases } from './refusal.ts'
import { revisionCases } from './revision.ts'
import { rowCases } from './row.ts'
import { trialCases } from './trial.ts'

export interface ContractStore extends World {
  /** An empty store. The suite closes it. */
  readonly store: Store
}

export interface ContractOptions {
  /** Registers a test with the test runner. */
  readonly test: (name: string, run: () => Promise<void>) => void
  readonly open: () => Promise<ContractStore>
}

/** The contract of every store. An adapter is complete when this suite passes. */
export function storeContract({ test, open }: ContractOptions): void {
  const cases = {
    ...logCases,
    ...leaseCases,
    ...commitCases,
    ...refusalCases,
    ...performCases,
    ...laneCases,
    ...rowCases,
    ...policyCases,
    ...trialCases,
    ...inboxCases,
    ...breakerCases,
    ...redriveCases,
    ...rebuildCases,
    ...revisionCases,
    ...incidentCases,
    ...auditCases,
  }
  for (const [name, run] of Object.entries(cases)) {
    test(name, async () => {
      const world = await open()
      await using store = world.store
      await run(store, world)
    })
  }
}

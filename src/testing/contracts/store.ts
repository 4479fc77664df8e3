import type { Store } from '../../store.ts'
import type { VirtualRuntime } from '../virtual.ts'
import { commitCases } from './commit.ts'
import { laneCases } from './lane.ts'
import { leaseCases } from './lease.ts'
import { logCases } from './log.ts'
import { rowCases } from './row.ts'

export interface ContractOptions {
  /** Registers a test with whatever runner is used. */
  readonly test: (name: string, run: () => Promise<void>) => void
  /** An empty store whose leases go by the given clock. It is closed by the suite. */
  readonly open: (runtime: VirtualRuntime) => Promise<Store>
  readonly createRuntime: () => VirtualRuntime
}

/** What every store must do. An adapter is finished when this passes on it. */
export function storeContract({ test, open, createRuntime }: ContractOptions): void {
  for (const [name, run] of Object.entries({ ...logCases, ...leaseCases, ...commitCases, ...laneCases, ...rowCases })) {
    test(name, async () => {
      const runtime = createRuntime()
      await using store = await open(runtime)
      await run(store, runtime)
    })
  }
}

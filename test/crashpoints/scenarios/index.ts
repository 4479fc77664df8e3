import type { Scenario } from '../scene.ts'
import { folds } from './folds.ts'
import { handlers } from './handlers.ts'
import { logs, processes, rebuilds, sql } from './others.ts'
import { redrives } from './redrives.ts'

export const scenarios: readonly Scenario[] = [
  ...folds,
  ...redrives,
  ...handlers,
  ...sql,
  ...processes,
  ...rebuilds,
  ...logs,
]

import { availableParallelism } from 'node:os'
import { defaultClientConditions, defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'

// Tests import `holdfast` and `holdfast/sqlite` like any user does; this condition leads those names to `src`, so that
// no test ever runs against a stale build.
const source = '@holdfast/source'

export default defineConfig({
  resolve: { conditions: [source, ...defaultClientConditions] },
  ssr: { resolve: { conditions: [source, ...defaultServerConditions] } },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts', 'bench/**/*.test.ts'],
    globalSetup: ['test/postgres/setup.ts'],
    // Processes, because tests kill them, change their working directory and load node:sqlite.
    pool: 'forks',
    // Most of them wait, for a server or a process: as many as there are cores, not one fewer.
    maxWorkers: availableParallelism(),
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
})

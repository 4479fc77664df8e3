import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defaultClientConditions, defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'

// Tests import `holdfast` and `holdfast/sqlite` like any user does; this condition leads those names to `src`, so that
// no test ever runs against a stale build.
const source = '@holdfast/source'

const memory = '/dev/shm'
const roomInMemory = 4 * 1_073_741_824

/**
 * The files of tests are kept in memory where there is room. Nobody pulls the plug in the middle of a test run, and to wait for a disk would be
 * most of its time.
 */
function scratch(): Record<string, string> {
  try {
    const { bavail, bsize } = statfsSync(memory)
    if (bavail * bsize < roomInMemory) return {}
    const folder = mkdtempSync(join(memory, 'holdfast-tests-'))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    // Hundreds of processes are started, most of them from the same files: whatever one has compiled the next need not.
    return { TMPDIR: folder, NODE_COMPILE_CACHE: join(folder, 'compiled') }
  } catch {
    return {}
  }
}

export default defineConfig({
  resolve: { conditions: [source, ...defaultClientConditions] },
  ssr: { resolve: { conditions: [source, ...defaultServerConditions] } },
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts', 'bench/**/*.test.ts'],
    globalSetup: ['test/postgres/setup.ts'],
    // Processes, because tests kill them, change their working directory and load node:sqlite.
    pool: 'forks',
    // Most of them wait, for a server or a process: one more than there are cores.
    maxWorkers: availableParallelism() + 1,
    env: scratch(),
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
})

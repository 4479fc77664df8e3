import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, relative, sep } from 'node:path'
import { defaultClientConditions, defaultServerConditions } from 'vite'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { costOf } from './scripts/related.mjs'

// Tests import `holdfast` and `holdfast/sqlite` like any user does; this condition leads those names to `src`, so that
// no test ever runs against a stale build.
const source = '@holdfast/source'

const memory = '/dev/shm'
const roomInMemory = 4 * 1_073_741_824

/**
 * The files of tests are kept in memory where there is room. No test depends on what survives a power cut, and waiting for a disk would be most
 * of the time.
 */
function scratch(): Record<string, string> {
  try {
    const { bavail, bsize } = statfsSync(memory)
    if (bavail * bsize < roomInMemory) return {}
    const folder = mkdtempSync(join(memory, 'holdfast-tests-'))
    process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
    // Hundreds of processes are started, most of them from the same files: each is compiled once.
    return { TMPDIR: folder, NODE_COMPILE_CACHE: join(folder, 'compiled') }
  } catch {
    return {}
  }
}

/** Vitest begins with the largest files; ours that take longest are small, and would run last, one core idle beside them. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const cost = ({ moduleId, project }: TestSpecification) =>
      costOf(relative(project.config.root, moduleId).split(sep).join('/'))
    // oxlint-disable-next-line unicorn/no-array-sort -- of the sequencer, not of an array
    const bySize = await super.sort(files)
    return bySize.toSorted((a, b) => cost(b) - cost(a))
  }
}

/** Tests of files, and of the engine as a whole on the store in memory or on SQLite. */
const unitTests = ['src/**/*.test.ts', 'test/engine/*.test.ts']
export const testFiles = [...unitTests, 'test/**/*.test.ts', 'examples/**/*.test.ts', 'bench/**/*.test.ts']

/** Tests of `src` that need a server, or real time. */
const notUnits = ['src/postgres/**', 'src/sqlite/**', 'src/watchdog/**', 'src/runtime/system.test.ts']

export default defineConfig({
  resolve: { conditions: [source, ...defaultClientConditions] },
  ssr: { resolve: { conditions: [source, ...defaultServerConditions] } },
  test: {
    // Processes, because tests kill them, change their working directory and load node:sqlite.
    pool: 'forks',
    // One process runs many files, which takes 0.2 s less for each. Tests leave their process as they found it.
    isolate: false,
    // Most of them wait, for a server or a process: two more than there are cores.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    env: scratch(),
    testTimeout: 30_000,
    hookTimeout: 30_000,
    projects: [
      {
        extends: true,
        test: { name: 'units', include: unitTests, exclude: notUnits },
      },
      {
        extends: true,
        test: {
          name: 'stores',
          include: [...testFiles.filter((files) => !unitTests.includes(files)), ...notUnits.map(testsOf)],
          exclude: ['test/engine/**'],
          // Here, so that no server is started where only units are tested.
          globalSetup: ['test/postgres/setup.ts', 'test/services/setup.ts'],
        },
      },
    ],
  },
})

function testsOf(path: string): string {
  return path.endsWith('**') ? `${path}/*.test.ts` : path
}

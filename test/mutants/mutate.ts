import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Stryker } from '@stryker-mutator/core'
import { type FolderName, folders } from './folders.ts'
import { testsVariable } from './tests-variable.ts'

export interface Mutated {
  readonly folder: FolderName
  readonly mutants: number
  readonly killed: number
  /** It ran on without an end. That is noticed too. */
  readonly timeout: number
  readonly survived: number
  /** No test even runs it. */
  readonly noCoverage: number
  /** An error outside of any test. It says nothing, and has no part in the score. */
  readonly errors: number
  /** How many of a hundred are noticed. */
  readonly score: number
  readonly alive: readonly Alive[]
}

export interface Alive {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly mutator: string
  /** What stands there instead. */
  readonly code: string
}

/** In a folder that git does not see. */
const place = 'data/mutants'

/** Mutates the folder, or only some of its files, which may have lines behind them: `src/engine/projection/page.ts:10-20`. */
export async function mutate(
  folder: FolderName,
  files: readonly string[] = folders[folder].mutate,
  tests: readonly string[] = folders[folder].tests,
): Promise<Mutated> {
  process.env[testsVariable] = JSON.stringify(tests)
  const results = await new Stryker({
    mutate: [...files, '!src/**/*.test.ts'],
    testRunner: 'keeping',
    plugins: [fileURLToPath(new URL('./runner.ts', import.meta.url))],
    testRunnerNodeArgs: ['--conditions=@holdfast/source'],
    // What a mutant leaves in memory goes with the process.
    maxTestRunnerReuse: 300,
    coverageAnalysis: 'perTest',
    // Most texts are for people, and tests that repeat them letter by letter only hinder whoever writes better ones. Those that are
    // not are names that the compiler knows.
    mutator: { excludedMutations: ['StringLiteral'] },
    incremental: true,
    incrementalFile: `${place}/${folder}.json`,
    tempDirName: `${place}/sandbox`,
    // What no test of these needs is not copied.
    ignorePatterns: ['bench', 'data', 'dist', 'docs', 'examples', '*.tgz'],
    // There is no such file: Stryker would read it with an interface that the compiler has no more.
    tsconfigFile: `${place}/tsconfig.json`,
    concurrency: availableParallelism(),
    // A machine that is busy with something else must not make a mutant look like one that never ends.
    timeoutMS: 20_000,
    timeoutFactor: 2,
    dryRunTimeoutMinutes: 60,
    reporters: ['progress-append-only'],
    allowConsoleColors: false,
    warnings: false,
  }).runMutationTest()
  const count = (status: string) => results.filter((result) => result.status === status).length
  const [killed, timeout, survived, noCoverage] = ['Killed', 'Timeout', 'Survived', 'NoCoverage'].map(count) as [
    number,
    number,
    number,
    number,
  ]
  const mutants = killed + timeout + survived + noCoverage
  return {
    folder,
    mutants,
    killed,
    timeout,
    survived,
    noCoverage,
    errors: count('RuntimeError') + count('CompileError'),
    score: Math.round(((killed + timeout) / mutants) * 10_000) / 100,
    alive: results
      .filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
      .map(({ fileName, location, mutatorName, replacement }) => ({
        file: fileName,
        line: location.start.line,
        column: location.start.column,
        mutator: mutatorName,
        code: replacement ?? '',
      })),
  }
}

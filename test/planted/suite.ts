import { readFile, rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { run } from './command.ts'

/** What tests say of the code they ran on. */
export type Verdict =
  | { readonly verdict: 'green' }
  /** The first test that failed. */
  | { readonly verdict: 'red'; readonly test: string }
  /** It does not even load, or never ends by itself: no test has found anything. */
  | { readonly verdict: 'broken'; readonly why: string }

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

/** The servers that are there for tests, in the environment of a run. See `servers.ts`. */
export const serversVariable = 'HOLDFAST_TEST_SERVERS'

/** Runs test files in a copy of the project, up to the first that fails. */
export async function runSuite(
  folder: string,
  files: readonly string[],
  servers: readonly { readonly name: string; readonly url: string }[] = [],
): Promise<Verdict> {
  const output = join(folder, 'verdict.json')
  await rm(output, { force: true })
  const options = ['--config', 'test/planted/vitest.config.ts', '--bail', '1', '--maxWorkers', '1']
  const reporters = ['--reporter', 'json', '--outputFile', output]
  const { code, stderr } = await run(
    process.execPath,
    [join(folder, 'node_modules/vitest/vitest.mjs'), 'run', ...options, ...reporters, ...files],
    { cwd: folder, env: { ...process.env, [serversVariable]: JSON.stringify(servers) } },
  )
  if (code === null) return { verdict: 'broken', why: 'it did not come to an end' }
  const report = await readFile(output, 'utf8').catch(() => undefined)
  if (report === undefined) return { verdict: 'broken', why: `vitest wrote no report. ${stderr.slice(-2_000)}` }
  return verdictOf(folder, code, JSON.parse(report) as Report)
}

function verdictOf(folder: string, code: number, { testResults }: Report): Verdict {
  for (const { name, assertionResults } of testResults) {
    const failed = assertionResults.find(({ status }) => status === 'failed')
    if (failed) return { verdict: 'red', test: `${relative(folder, name)}: ${failed.fullName.trim()}` }
  }
  const unloaded = testResults.find(({ status, assertionResults }) => status === 'failed' && !assertionResults.length)
  if (unloaded) return { verdict: 'broken', why: `${relative(folder, unloaded.name)}: ${unloaded.message}` }
  const ran = testResults.flatMap(({ assertionResults }) => assertionResults).some(({ status }) => status === 'passed')
  if (!ran) return { verdict: 'broken', why: 'no test ran' }
  // Such as a promise that was rejected with nobody waiting for it.
  return code === 0 ? { verdict: 'green' } : { verdict: 'red', test: 'an error outside of any test' }
}

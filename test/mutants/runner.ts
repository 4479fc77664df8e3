// A runner for Stryker that keeps everything loaded: to try the next mutant it only says which one is active, and runs the tests that
// come across it. With vitest's own it would load some hundred files for each of thousands of mutants.
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { resolve } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { MutantCoverage } from '@stryker-mutator/api/core'
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin'
import {
  type CompleteDryRunResult,
  type DryRunResult,
  DryRunStatus,
  type MutantRunOptions,
  type MutantRunResult,
  MutantRunStatus,
  type TestResult,
  type TestRunner,
  TestStatus,
} from '@stryker-mutator/api/test-runner'
import * as fc from 'fast-check'
import { testsVariable } from './tests-variable.ts'
import { untilHung } from './until-hung.ts'
import { collect, type Test, tests as collected } from './vitest.ts'

/** What the changed code asks, and tells. */
interface Namespace {
  activeMutant?: string | undefined
  currentTestId?: string | undefined
  mutantCoverage?: MutantCoverage
  hitCount?: number | undefined
  hitLimit?: number | undefined
}

/** Measures time, which a mutant is not to blame for. */
const timing = 'takes as long as the text is long'

/** How long each test took at first, for the processes that come later. In the sandbox, which all of them share. */
const tookFile = 'mutants-took.json'

const shim = new URL('./vitest.ts', import.meta.url).href
// oxlint-disable-next-line no-underscore-dangle -- its name is Stryker's
const namespace = ((globalThis as { __stryker__?: Namespace }).__stryker__ ??= {})

type Ran =
  | { readonly result: 'passed'; readonly ms: number }
  | { readonly result: 'failed'; readonly why: string }
  /** It passed, but something was thrown that nobody waited for. */
  | { readonly result: 'stray'; readonly why: string }
  | { readonly result: 'hung'; readonly why: string }

class KeepingRunner implements TestRunner {
  /** Those that have noticed most come first, then the quick ones. */
  readonly #noticed = new Map<string, number>()
  readonly #took = new Map<string, number>()
  #tests: readonly Test[] = []
  #isLoaded = false
  #isSpoilt = false

  capabilities() {
    return { reloadEnvironment: false }
  }

  async dryRun(): Promise<DryRunResult> {
    await this.#load()
    const results: TestResult[] = []
    for (const test of this.#tests) {
      namespace.currentTestId = test.id
      const ran = await this.#run(test)
      namespace.currentTestId = undefined
      const about = { id: test.id, name: test.id, fileName: resolve(test.file) }
      results.push(
        ran.result === 'passed'
          ? { ...about, status: TestStatus.Success, timeSpentMs: ran.ms }
          : { ...about, status: TestStatus.Failed, timeSpentMs: 0, failureMessage: ran.why },
      )
    }
    writeFileSync(tookFile, JSON.stringify([...this.#took]))
    const mutantCoverage = structuredClone(namespace.mutantCoverage) ?? { static: {}, perTest: {} }
    // Once more, the other way round: a test that needs another one before it, or can't run twice, would blame mutants for it.
    for (const test of this.#tests.toReversed()) {
      const ran = await this.#run(test)
      if (ran.result !== 'passed')
        return { status: DryRunStatus.Error, errorMessage: `${test.id} does not stand by itself: ${ran.why}` }
    }
    return { status: DryRunStatus.Complete, tests: results, mutantCoverage } satisfies CompleteDryRunResult
  }

  async mutantRun({
    activeMutant,
    testFilter,
    hitLimit,
    mutantActivation,
  }: MutantRunOptions): Promise<MutantRunResult> {
    // A new process takes over, and this mutant with it.
    if (this.#isSpoilt) process.exit(1)
    if (mutantActivation === 'static') namespace.activeMutant = activeMutant.id
    try {
      await this.#load()
    } catch (error) {
      // A file of tests that does not load is noticed as well.
      this.#isSpoilt = true
      return { status: MutantRunStatus.Killed, killedBy: [], failureMessage: String(error), nrOfTests: 0 }
    }
    const filter = testFilter && new Set(testFilter)
    const chosen = this.#sorted(this.#tests.filter(({ id }) => filter?.has(id) ?? true))
    const activate = () => Object.assign(namespace, { activeMutant: activeMutant.id, hitCount: 0, hitLimit })
    for (const [i, test] of chosen.entries()) {
      activate()
      const first = await this.#run(test)
      // It may be of the mutant before: once more.
      const ran = first.result === 'stray' ? await this.#run(test) : first
      const isEndless = (namespace.hitCount ?? 0) > (hitLimit ?? Number.POSITIVE_INFINITY)
      Object.assign(namespace, { activeMutant: undefined, hitCount: undefined, hitLimit: undefined })
      if (ran.result === 'passed' && !isEndless) continue
      this.#noticed.set(test.id, (this.#noticed.get(test.id) ?? 0) + 1)
      // What the mutant left behind must not be taken for what the next one does.
      if (mutantActivation === 'static' || ran.result === 'hung') this.#isSpoilt = true
      else this.#isSpoilt = (await this.#run(test)).result !== 'passed'
      if (isEndless) return { status: MutantRunStatus.Timeout, reason: 'it went on and on' }
      if (ran.result === 'hung') return { status: MutantRunStatus.Timeout, reason: ran.why }
      const failureMessage = ran.result === 'passed' ? '' : ran.why
      return { status: MutantRunStatus.Killed, killedBy: [test.id], failureMessage, nrOfTests: i + 1 }
    }
    return { status: MutantRunStatus.Survived, nrOfTests: chosen.length }
  }

  #sorted(chosen: readonly Test[]): Test[] {
    const noticed = ({ id }: Test) => this.#noticed.get(id) ?? 0
    const took = ({ id }: Test) => this.#took.get(id) ?? 0
    return chosen.toSorted((a, b) => noticed(b) - noticed(a) || took(a) - took(b))
  }

  async #run(test: Test): Promise<Ran> {
    const begun = performance.now()
    const { hung, stop } = untilHung()
    const strays: string[] = []
    const hear = (reason: unknown) => strays.push(`with nobody waiting: ${String(reason)}`)
    process.on('unhandledRejection', hear)
    try {
      const why = await Promise.race([test.run().then(() => undefined), hung])
      const ms = performance.now() - begun
      this.#took.set(test.id, ms)
      if (why !== undefined) return { result: 'hung', why }
      // A promise that was rejected, with nobody waiting for it, is told of by then.
      await setImmediate()
      const [stray] = strays
      return stray === undefined ? { result: 'passed', ms } : { result: 'stray', why: stray }
    } catch (error) {
      return { result: 'failed', why: error instanceof Error ? error.message : String(error) }
    } finally {
      stop()
      process.off('unhandledRejection', hear)
    }
  }

  async #load(): Promise<void> {
    if (this.#isLoaded) return
    this.#isLoaded = true
    // The same cases in every run, or a mutant would survive by chance.
    fc.configureGlobal({ seed: Number(process.env['HOLDFAST_SEED'] ?? 1) })
    registerHooks({
      resolve: (name, context, next) =>
        name === 'vitest' && context.parentURL !== shim ? { url: shim, shortCircuit: true } : next(name, context),
    })
    const patterns = JSON.parse(process.env[testsVariable] ?? '[]') as string[]
    for (const file of globSync(patterns).toSorted()) {
      collect(file)
      await import(pathToFileURL(resolve(file)).href)
    }
    if (existsSync(tookFile))
      for (const [id, ms] of JSON.parse(readFileSync(tookFile, 'utf8')) as [string, number][]) this.#took.set(id, ms)
    this.#tests = collected.filter(({ id }) => !id.endsWith(timing))
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'keeping', KeepingRunner)]

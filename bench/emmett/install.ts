import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Settings } from '../benchmark.ts'

const folder = new URL('./', import.meta.url)
const name = '@event-driven-io/emmett-postgresql'

export interface Emmett {
  readonly fill: URL
  readonly consume: URL
  /** Why it can't be had. */
  readonly missing: string | undefined
}

/**
 * Emmett is no dependency of Holdfast, so it has a package of its own here, that is installed when a benchmark first asks for it.
 * (In a folder of its own, too: a package.json beside the benchmarks would hide `holdfast` from them.)
 */
export async function findEmmett({ progress, signal }: Settings): Promise<Emmett> {
  const isOff = process.env['HOLDFAST_EMMETT'] === 'off'
  const missing = isOff ? 'HOLDFAST_EMMETT is off' : (await isInstalled()) ? undefined : await install()
  if (missing !== undefined && !isOff && process.env.CI === 'true')
    throw new Error(`With CI=true Emmett must be there. ${missing}`)
  if (missing !== undefined) progress(`going on without Emmett: ${missing}`)
  return { fill: new URL('fill.ts', folder), consume: new URL('consume.ts', folder), missing }

  async function install(): Promise<string | undefined> {
    progress('Emmett is not installed: running npm ci in bench/emmett')
    try {
      // Its talk goes to stderr: stdout is for the report.
      const npm = spawn('npm', ['ci', '--fetch-retries=1', '--loglevel=error'], {
        cwd: fileURLToPath(folder),
        stdio: ['ignore', 2, 'inherit'],
        signal,
      })
      const [code] = (await once(npm, 'exit')) as [number | null]
      return code === 0 ? undefined : `npm ci in bench/emmett ended with ${code}`
    } catch (error) {
      signal.throwIfAborted()
      return `npm ci in bench/emmett could not be run: ${String(error)}`
    }
  }
}

async function isInstalled(): Promise<boolean> {
  const wanted = (await readJson('package.json')) as { readonly dependencies: Record<string, string> }
  const found = (await readJson(`node_modules/${name}/package.json`).catch(() => undefined)) as
    | { readonly version: string }
    | undefined
  return found?.version === wanted.dependencies[name]
}

async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(new URL(path, folder), 'utf8'))
}

import { spawn } from 'node:child_process'

export interface Ran {
  /** Null when it was ended because it took too long. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Bugs make programs hang. Longer than anything takes that ends by itself, however busy the machine is. */
const patienceMs = 15 * 60_000
const lastWords = 100_000

/** Runs a program to its end, and takes everything with it that it started. */
export async function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
): Promise<Ran> {
  const child = spawn(command, args, { ...options, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const said = { stdout: '', stderr: '' }
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      said[stream] = (said[stream] + text).slice(-lastWords)
    })
  const endAll = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // All of it is gone already.
    }
  }
  const { promise, resolve, reject } = Promise.withResolvers<number | null>()
  child.on('error', reject).on('close', resolve)
  const timer = setTimeout(endAll, patienceMs)
  process.once('exit', endAll)
  try {
    return { code: await promise, ...said }
  } finally {
    clearTimeout(timer)
    process.off('exit', endAll)
    endAll()
  }
}

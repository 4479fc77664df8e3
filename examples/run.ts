import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Starts an example in a process, for its tests. DATABASE_URL is not inherited; pass it in `env`. */
export function start(script: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const { DATABASE_URL: _, ...inherited } = process.env
  const child = spawn(process.execPath, ['--conditions=@holdfast/source', path, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited, ...env },
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (output.stderr += text))
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve({ code, ...output }))
  })
  return { process: child, output, ended }
}

export function run(script: string, args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Ended> {
  return start(script, args, env).ended
}

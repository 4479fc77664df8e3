import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** An engine in a process of its own, that works on the file already. */
export async function startEngineProcess(file: string): Promise<ChildProcess> {
  const child = spawnNode('engine-process.ts', [file])
  const [first] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [unknown]
  if (!String(first).startsWith('works')) throw new Error(`The engine did not start: ${String(first)}`)
  return child
}

/** `holdfast` with these arguments. */
export function startCommand(args: readonly string[]) {
  const child = spawnNode('../../src/cli/main.ts', args)
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (output.stderr += text))
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve({ code, ...output }))
  })
  return { process: child, output, ended }
}

function spawnNode(script: string, args: readonly string[]) {
  const path = fileURLToPath(new URL(script, import.meta.url))
  return spawn(process.execPath, ['--no-warnings', '--conditions=@holdfast/source', path, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

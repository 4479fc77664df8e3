import { createInterface } from 'node:readline'
import type { Io } from '../io.ts'

/** Whether there is somebody to ask. */
export function canAsk(io: Io): boolean {
  return io.stdin.isTTY === true && io.stderr.isTTY === true
}

/** One line of a person's, without the spaces around it; undefined when they closed the input instead. */
export async function ask(io: Io, question: string, signal: AbortSignal): Promise<string | undefined> {
  // On stderr: stdout belongs to whoever takes the data.
  const lines = createInterface({ input: io.stdin, output: io.stderr, terminal: false })
  try {
    const line = await new Promise<string | undefined>((resolve) => {
      lines.once('line', resolve)
      lines.once('close', () => resolve(undefined))
      signal.addEventListener('abort', () => resolve(undefined), { once: true })
      io.stderr.write(question)
    })
    return line?.trim()
  } finally {
    lines.close()
  }
}

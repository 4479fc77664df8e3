import { createInterface } from 'node:readline'
import type { Io } from '../io.ts'

/** Whether the CLI can prompt: stdin and stderr are terminals. */
export function canAsk(io: Io): boolean {
  return io.stdin.isTTY === true && io.stderr.isTTY === true
}

/** Reads one line and trims it; undefined if the input was closed. */
export async function ask(io: Io, question: string, signal: AbortSignal): Promise<string | undefined> {
  // On stderr: stdout may be piped to another program.
  const lines = createInterface({ input: io.stdin, output: io.stderr, terminal: false })
  try {
    const line = await new Promise<string | undefined>((resolve) => {
      lines.once('line', resolve)
      lines.once('close', () => resolve(undefined))
      signal.addEventListener('abort', () => resolve(undefined), { once: true })
      io.stderr.write(question)
    })
    // No answer ended the line of the question.
    if (line === undefined) io.stderr.write('\n')
    return line?.trim()
  } finally {
    lines.close()
  }
}

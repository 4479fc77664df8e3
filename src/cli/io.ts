import { hostname, userInfo } from 'node:os'
import type { Readable, Writable } from 'node:stream'

/** Everything a command has from outside. The real one is the process; a test brings its own. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** Who runs it, as the system says; undefined where it doesn't. */
  readonly osUser: string | undefined
  /** Calls back when the person (or the system) wants it to end: ^C or a signal. Returns what ends the listening. */
  onInterrupt(listener: (signal: string) => void): () => void
}

export function processIo(): Io {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    osUser: systemUser(),
    onInterrupt: (listener) => {
      const signals = ['SIGINT', 'SIGTERM'] as const
      for (const signal of signals) process.on(signal, listener)
      return () => {
        for (const signal of signals) process.off(signal, listener)
      }
    },
  }
}

/** A user without an entry of its own, as in many containers, makes userInfo throw. */
function systemUser(): string | undefined {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return undefined
  }
}

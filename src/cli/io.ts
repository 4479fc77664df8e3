import { hostname, userInfo } from 'node:os'
import type { Readable, Writable } from 'node:stream'

/** The environment of a command: the process, or a test's substitute. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number }
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** The user name of the operating system; undefined where there is none. */
  readonly osUser: string | undefined
  /** Calls the listener on SIGINT (^C) and SIGTERM. Returns a function that removes the listener. */
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

/** `userInfo` throws for a user without a passwd entry, as in many containers. */
function systemUser(): string | undefined {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return undefined
  }
}

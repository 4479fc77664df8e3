import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Account } from './binaries.ts'

// A server must not outlive the process that started it, not even when that one is killed with -9. So a shell stands by
// and reads from a pipe whose other end only that process holds: a line says that all is well, the end of the pipe that
// the process is gone.
//
// A process that dies while its server starts leaves no pid file yet to stop it by; hence the second try.
const script = `
read -r _ && exit
stop() { "$1" stop --pgdata="$2" --mode=immediate; }
stop "$@" || { sleep 1; stop "$@"; }
[ -z "$3" ] || rm -rf "$3" || { sleep 1; rm -rf "$3"; }
`

export interface GuardOptions {
  readonly pgCtl: string
  readonly data: string
  /** Removed when the process is gone. */
  readonly remove?: string | undefined
  readonly account: Account
}

/** Returns how to dismiss it. */
export async function startGuard({ pgCtl, data, remove, account }: GuardOptions): Promise<() => void> {
  const guard = spawn('sh', ['-c', script, 'guard', pgCtl, data, remove ?? ''], {
    ...account,
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    // Out of reach of a Ctrl-C in the terminal.
    detached: true,
  })
  await once(guard, 'spawn')
  guard.stdin.on('error', () => undefined)
  guard.unref()
  return () => guard.stdin.end('\n')
}

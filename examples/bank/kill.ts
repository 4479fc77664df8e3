import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { EngineMessage } from './engine.ts'

/** What happened to the engine's process. */
export interface EngineFacts {
  /** What ended the first process: SIGKILL, or it went by itself before it could be killed. */
  readonly endedBy: string
  /** The last event whose outcome was in the file then, and the last event of the log. */
  readonly position: number
  readonly head: number
  /** Where the second process took the work up. */
  readonly resumedAt: number
  /** From the kill to the first commit of the process that came after it. */
  readonly recoveredInMs: number
  /** Of the second process, while there was more to do than it could do at once. */
  readonly perSecond: number
}

export interface Bank {
  readonly file: string
  readonly pageEvents: number
  /** The first commit at or above this position is the last one that the first process lives to tell. */
  readonly killAt: number
  /** Where the subscription and the log are, as the file has it. */
  readonly look: () => Promise<{ readonly position: number; readonly head: number }>
  readonly onMessage: (message: EngineMessage) => void
}

let running: ChildProcess | undefined

/** Runs the engine, kills it in the middle of its work, and runs it again, up to the end of the log. */
export async function runAndKill(bank: Bank, allAppended: Promise<unknown>): Promise<EngineFacts> {
  const first = startEngine(bank, (message) => {
    if (message.kind === 'committed' && message.position >= bank.killAt) first.kill('SIGKILL')
  })
  const [code, signal] = (await once(first, 'exit')) as [number | null, string | null]
  const killed = performance.now()
  const where = await bank.look()

  let resumedAt = Number.NaN
  let recoveredInMs = Number.NaN
  let done: Extract<EngineMessage, { kind: 'drained' }> | undefined
  const second = startEngine(bank, (message) => {
    if (message.kind === 'claimed') resumedAt = message.position
    if (message.kind === 'committed' && Number.isNaN(recoveredInMs)) recoveredInMs = performance.now() - killed
    if (message.kind === 'drained') done = message
  })
  const ended = once(second, 'exit')
  await Promise.race([allAppended, ended])
  if (second.connected) second.send('everything is appended')
  await ended
  if (!done) throw new Error(`The second engine ended early, with ${second.signalCode ?? second.exitCode}.`)
  const perSecond = Math.round((done.events / done.busyMs) * 1_000)
  const endedBy = signal ?? `exit ${code}`
  return { endedBy, ...where, resumedAt, recoveredInMs: Math.round(recoveredInMs), perSecond }
}

/** For Ctrl-C, and for a failure: no process is left behind. */
export function killEngine(): void {
  running?.kill('SIGKILL')
}

function startEngine({ file, pageEvents, onMessage }: Bank, listen: (message: EngineMessage) => void): ChildProcess {
  const script = fileURLToPath(new URL('engine.ts', import.meta.url))
  const engine = fork(script, [file, String(pageEvents)], { execArgv: ['--conditions=@holdfast/source'] })
  running = engine
  return engine.on('message', (message: EngineMessage) => {
    onMessage(message)
    listen(message)
  })
}

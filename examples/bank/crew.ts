import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { EngineMessage } from './engine.ts'
import type { Place } from './place.ts'

export interface CrewOptions {
  readonly place: Place
  readonly pageEvents: number
  readonly onProgress: (done: number, lanesHeld: number) => void
}

/** One process with an engine, and its reports. */
export interface Member {
  readonly process: ChildProcess
  readonly ended: Promise<unknown>
  /** How many events were processed when it started. */
  found: number
  committed: number
  drained: { readonly events: number; readonly busyMs: number } | undefined
}

/** The ownership of a partition by a process, from one position to another, as far as it reported. */
export interface Claim {
  readonly member: Member
  readonly partition: number
  readonly from: number
  upTo: number
  firstCommitAt: number | undefined
}

const running = new Set<ChildProcess>()

/** On Ctrl-C or a failure, all processes are ended. */
export function killEngines(): void {
  for (const engine of running) engine.kill('SIGKILL')
}

/** The processes that run engines, and the owner of each partition. */
export class Crew {
  /** In the order of the reports. The last one of a partition is its current owner. */
  readonly claims: Claim[] = []
  /** How many events were processed, according to the reports. */
  done = 0
  readonly #options: CrewOptions
  /** The processes that should be running. */
  readonly #members = new Set<Member>()
  #lanesHeld = 0
  #look: () => void = () => undefined

  constructor(options: CrewOptions) {
    this.#options = options
  }

  start(): Member {
    const { place, pageEvents } = this.#options
    const script = fileURLToPath(new URL('engine.ts', import.meta.url))
    const engine = fork(script, [JSON.stringify(place), String(pageEvents)], {
      execArgv: ['--conditions=@holdfast/source'],
    })
    running.add(engine)
    const ended = once(engine, 'exit')
    const member: Member = { process: engine, ended, found: Number.NaN, committed: 0, drained: undefined }
    this.#members.add(member)
    engine.on('message', (message: EngineMessage) => {
      this.#hear(member, message)
      this.#look()
    })
    engine.on('exit', () => {
      running.delete(engine)
      this.#look()
    })
    return member
  }

  /** Kills a process with SIGKILL; resolves when it has ended. */
  async kill(member: Member): Promise<void> {
    this.#members.delete(member)
    member.process.kill('SIGKILL')
    await member.ended
  }

  /** Lets the processes finish; resolves when they have ended. */
  async finish(members: readonly Member[]): Promise<void> {
    for (const member of members) {
      this.#members.delete(member)
      if (member.process.connected) member.process.send('everything is appended')
    }
    await Promise.all(members.map(({ ended }) => ended))
  }

  partitionsOf(member: Member): number[] {
    const owners = new Map(this.claims.map((claim) => [claim.partition, claim.member]))
    return [...owners].flatMap(([partition, owner]) => (owner === member ? [partition] : []))
  }

  /** Resolves when the condition is true. It is checked at each report of a process. Rejects if a process ends by itself. */
  until(isSo: () => boolean, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // Several messages can arrive before the waiting code continues, so the check ends with the first match.
    const end = (settle: () => void) => {
      this.#look = () => undefined
      settle()
    }
    this.#look = () => {
      const lost = [...this.#members].find(({ process }) => !running.has(process))
      if (isSo()) end(resolve)
      else if (lost) end(() => reject(new Error(`An engine ended early, with ${describeEnd(lost)}.`)))
    }
    signal?.addEventListener('abort', () => reject(new Error('The remaining engines make no progress.')))
    this.#look()
    return promise
  }

  #hear(member: Member, message: EngineMessage): void {
    switch (message.kind) {
      case 'started':
        member.found = message.done
        // A killed process may have committed more than it reported.
        this.done = Math.max(this.done, message.done)
        break
      case 'claimed': {
        const { partition, position } = message
        this.claims.push({ member, partition, from: position, upTo: position, firstCommitAt: undefined })
        break
      }
      case 'committed': {
        const claim = this.claims.findLast((one) => one.member === member && one.partition === message.partition)
        if (claim) {
          claim.upTo = message.position
          claim.firstCommitAt ??= performance.now()
        }
        member.committed += message.events
        this.done += message.events
        break
      }
      case 'held':
        this.#lanesHeld++
        break
      case 'drained':
        member.drained = message
        break
      default:
        message satisfies never
    }
    this.#options.onProgress(this.done, this.#lanesHeld)
  }
}

export function describeEnd({ process: { signalCode, exitCode } }: Member): string {
  return signalCode ?? `exit ${exitCode}`
}

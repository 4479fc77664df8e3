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

/** One process with an engine, and what it told. */
export interface Member {
  readonly process: ChildProcess
  readonly ended: Promise<unknown>
  /** How many events had their outcome when it came. */
  found: number
  committed: number
  drained: { readonly events: number; readonly busyMs: number } | undefined
}

/** A partition in the hands of a process, from one position up to another, as far as it told. */
export interface Claim {
  readonly member: Member
  readonly partition: number
  readonly from: number
  upTo: number
  firstCommitAt: number | undefined
}

const running = new Set<ChildProcess>()

/** For Ctrl-C, and for a failure: no process is left behind. */
export function killEngines(): void {
  for (const engine of running) engine.kill('SIGKILL')
}

/** The processes that run engines, and who has which partition. */
export class Crew {
  /** In the order in which they were told. The last one of a partition says who owns it. */
  readonly claims: Claim[] = []
  /** How many events have their outcome, as far as the processes told. */
  done = 0
  readonly #options: CrewOptions
  /** Those who should be there. */
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

  /** Kills it with -9; resolves when it is gone. */
  async kill(member: Member): Promise<void> {
    this.#members.delete(member)
    member.process.kill('SIGKILL')
    await member.ended
  }

  /** Lets them finish; resolves when they are gone. */
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

  /** Resolves when it is so, which is looked at whenever one of them tells something. One that ends by itself is an error. */
  until(isSo: () => boolean, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // Several messages may come before whoever waits hears of the first: what they would change is not asked for any more.
    const end = (settle: () => void) => {
      this.#look = () => undefined
      settle()
    }
    this.#look = () => {
      const lost = [...this.#members].find(({ process }) => !running.has(process))
      if (isSo()) end(resolve)
      else if (lost) end(() => reject(new Error(`An engine ended early, with ${describeEnd(lost)}.`)))
    }
    signal?.addEventListener('abort', () => reject(new Error('The engines that are left do not go on.')))
    this.#look()
    return promise
  }

  #hear(member: Member, message: EngineMessage): void {
    switch (message.kind) {
      case 'started':
        member.found = message.done
        // What a process that was killed had not told any more.
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

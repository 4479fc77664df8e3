import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createLog, type Store } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { createRandom } from 'holdfast/testing'
import { answer } from '../child.ts'
import { bankEvents, type Movement } from '../projection/bank.ts'
import { makeEvents } from '../projection/events.ts'
import { type Commit, startEngine } from './engine.ts'
import { pause, warmUpOf } from './pace.ts'

export interface LatencyTask {
  readonly url: string
  readonly engine: 'otherProcess' | 'sameProcess'
  readonly events: number
  readonly keys: number
}

const patienceMs = 10_000

/** Milliseconds until the engine tells of the commit that has the event in it. */
export interface Latency {
  /** From the call of `append`, with all that it takes to get the event into the log. */
  readonly called: number
  /** From its answer: how long what is in the log is not applied. Below 0 where the engine was quicker than the answer. */
  readonly answered: number
}

async function measure({ url, engine, events, keys }: LatencyTask): Promise<Latency[]> {
  await using running = new AsyncDisposableStack()
  const store = running.use(await createPostgresStore({ connection: url }))
  const log = createLog({ store, events: bankEvents })
  const commits = new Commits()
  running.use(engine === 'sameProcess' ? await engineHere(store, commits) : await engineElsewhere(url, commits))
  const random = createRandom(20_260_102)
  const warmUpEvents = warmUpOf(events)
  const samples: Latency[] = []
  for (const { key, type, data } of makeEvents({ events: warmUpEvents + events, keys })) {
    const draft = { type, data: JSON.parse(data) as Movement }
    const called = process.hrtime.bigint()
    const { position } = await log.append(key, [draft])
    const answered = process.hrtime.bigint()
    const applied = await commits.reach(position)
    samples.push({ called: Number(applied - called) / 1_000_000, answered: Number(applied - answered) / 1_000_000 })
    if (samples.length > warmUpEvents) await pause(random)
  }
  return samples.slice(warmUpEvents)
}

async function engineHere(store: Store, commits: Commits): Promise<AsyncDisposable> {
  return startEngine(store, (commit) => commits.add(commit))
}

async function engineElsewhere(url: string, commits: Commits): Promise<AsyncDisposable> {
  const child = fork(fileURLToPath(new URL('engine.ts', import.meta.url)), [url], {
    stdio: ['ignore', 2, 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  await Promise.race([
    once(child, 'message'),
    exited.then(([code]) => Promise.reject(new Error(`the engine's process ended with ${code}`))),
  ])
  child.on('message', (commit) => commits.add(commit as Commit))
  return {
    [Symbol.asyncDispose]: async () => {
      if (child.connected) child.disconnect()
      await exited
    },
  }
}

/** What was committed since the last position that was waited for: it may be told before the append returns, or after. */
class Commits {
  #told: Commit[] = []
  #look: () => void = () => undefined

  add(commit: Commit): void {
    this.#told.push(commit)
    this.#look()
  }

  /** When the first commit at or behind a position was told. */
  async reach(position: number): Promise<bigint> {
    const patience = AbortSignal.timeout(patienceMs)
    for (;;) {
      const commit = this.#told.find((told) => told.position >= position)
      if (commit) {
        this.#told = []
        return BigInt(commit.at)
      }
      patience.throwIfAborted()
      await new Promise<void>((resolve) => {
        this.#look = resolve
        patience.addEventListener('abort', () => resolve(), { once: true })
      })
    }
  }
}

if (import.meta.main) await answer(measure)

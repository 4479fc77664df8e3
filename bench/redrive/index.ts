import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createLog, createOperator, type Redrive, type Store } from 'holdfast'
import type { Benchmark, Settings } from '../benchmark.ts'
import { inChild } from '../child.ts'
import { openGround } from '../handlers/ground.ts'
import { bankEvents, homeCurrency } from '../projection/bank.ts'
import { openStore } from '../projection/open-store.ts'
import type { Place } from '../projection/way.ts'
import type { Checked } from './check.ts'
import { ledger } from './ledger.ts'
import { type Findings, summarise } from './report.ts'

const here = (file: string) => new URL(file, import.meta.url)

/** When the engine is killed, by how much of the redrive is done. */
const kills = [0.25, 0.5, 0.75]
const liveEveryMs = 5
const lookEveryMs = 50

/**
 * A bad release held every lane at its first event. The fixed release redrives all of them, while new events of the same keys arrive and
 * the engine is killed three times. Measured from the request to the end, including the kills.
 */
export const redrive: Benchmark = {
  summary: 'a redrive of everything that a bad release held, beside live events, with an engine that is killed',
  stores: ['postgres', 'sqlite'],
  defaults: { events: 1_000_000, rounds: 1 },
  run: async (settings) => {
    await using ground = await openGround(settings)
    const { signal, progress, events } = settings
    const keys = Math.max(1, Math.round(events / 10))
    const rounds: Findings[] = []
    for (let number = 1; number <= settings.rounds; number++) {
      const place = await ground.workspace.create(`round-${number}`)
      await inChild(ground.prepare, { place, events, keys, holdKeyOneIn: 1 }, { signal })
      progress(`round ${number}  ${events} events are in the log`)
      const held = await inChild<unknown, number>(here('hold.ts'), { place }, { signal })
      progress(`round ${number}  ${held} letters are held`)
      const run = await measure(settings, place, keys)
      progress(`round ${number}  ${run.redrive.letters} letters in ${Math.round(run.elapsedMs)} ms`)
      const checked = await inChild<unknown, Checked>(here('check.ts'), { place }, { signal })
      rounds.push({ ...run, checked, held })
    }
    return summarise(settings, rounds, ground.facts)
  },
}

async function measure({ signal }: Settings, place: Place, keys: number) {
  await using store = await openStore(place)
  await using engine = new MortalEngine(place, signal)
  await engine.start()
  await using live = appendLive(store, keys)
  const operator = createOperator({ store, subscriptions: [ledger('fixed')], by: 'the benchmark' })
  const begun = performance.now()
  const { redrive: asked } = await operator.redrive('ledger', { all: true }, { reason: 'the next release is out' })
  const askedMs = performance.now() - begun
  const left = [...kills]
  let now: Redrive = asked
  while (now.status === 'running') {
    signal.throwIfAborted()
    await setTimeout(lookEveryMs)
    now = await operator.findRedrive(asked.id)
    if (now.byState.done / now.lanes >= (left[0] ?? 2)) {
      left.shift()
      await engine.kill()
      await engine.start()
    }
  }
  const elapsedMs = performance.now() - begun
  await live.stop()
  await engine.stop()
  return { redrive: now, elapsedMs, askedMs, kills: kills.length - left.length, live: live.count }
}

/** New events of keys that are held, whatever becomes of them, at a steady rate. */
function appendLive(store: Store, keys: number) {
  const log = createLog({ store, events: bankEvents })
  let isOver = false
  let count = 0
  const run = (async () => {
    while (!isOver) {
      const key = `account-${String(Math.floor(Math.random() * keys)).padStart(6, '0')}`
      const reference = `live-${count++}`
      const data = { amount: 1, currency: homeCurrency, reference, counterparty: 'DE', purpose: 'live' }
      await log.append(key, [{ type: 'FundsCredited', data }])
      await setTimeout(liveEveryMs)
    }
  })()
  const stop = async () => {
    isOver = true
    await run
  }
  return {
    stop,
    get count() {
      return count
    },
    [Symbol.asyncDispose]: stop,
  }
}

class MortalEngine implements AsyncDisposable {
  readonly #place: Place
  readonly #signal: AbortSignal
  #child: ChildProcess | undefined

  constructor(place: Place, signal: AbortSignal) {
    this.#place = place
    this.#signal = signal
  }

  async start(): Promise<void> {
    this.#child = fork(fileURLToPath(here('engine.ts')), [JSON.stringify({ place: this.#place })], {
      signal: this.#signal,
      stdio: ['ignore', 2, 'inherit', 'ipc'],
    })
    await once(this.#child, 'message')
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (!child || child.exitCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
    this.#child = undefined
  }

  async stop(): Promise<void> {
    const child = this.#child
    if (!child) throw new Error('No engine is running.')
    child.send('stop')
    const [code] = (await once(child, 'exit')) as [number | null]
    this.#child = undefined
    if (code !== 0) throw new Error(`The engine ended with ${code}.`)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createEngine, type Store } from 'holdfast'
import { createRandom } from 'holdfast/testing'
import { effectsHandler, nowhere } from './consumers.ts'
import { Evidence, type Line } from './evidence.ts'
import { outcomesIn } from './finished.ts'
import { judge, type Verdict } from './judge.ts'
import { openStore, type Place } from './place.ts'
import { type Member, Team } from './team.ts'
import { createWriter, type Writer } from './writer.ts'

export interface KillOptions {
  readonly kills: number
  readonly seed: number
  /** Undefined: a SQLite file of its own. */
  readonly url?: string
  readonly onKill?: (kill: number) => void
}

export interface KillResult extends Verdict {
  readonly ok: boolean
  readonly store: string
  readonly engines: number
  readonly seed: number
  readonly kills: number
  /** While the process had effects under way; and several of them. */
  readonly killsUnderWay: number
  readonly killsSideBySide: number
  readonly seconds: number
}

const subscription = 'effects'
/** The kills here are nobody's fault: whom a death is blamed on is another test's question. */
const maxDeaths = 1_000
const enginesOn = { sqlite: 1, postgres: 3 }
/** So much is written ahead that there is always something under way, and so little that a careful process is soon through. */
const backlog = 150
const patienceMs = 5_000
const endMs = 120_000

/**
 * Kills engines with -9 at random moments, again and again, while their handler has effects outside and events are appended; then
 * lets them finish, and judges by what the outside saw.
 */
export async function runKills({ kills, seed, url, onKill }: KillOptions): Promise<KillResult> {
  const begun = performance.now()
  const random = createRandom(seed)
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-handlers-'))
  const place: Place =
    url === undefined ? { store: 'sqlite', file: join(folder, 'log.db') } : { store: 'postgres', url }
  const file = join(folder, 'effects')
  const engines = enginesOn[place.store]
  const tally = { underWay: 0, sideBySide: 0 }
  using evidence = new Evidence(file)
  await using store = await openStore(place)
  await createEngine({ store, subscriptions: [effectsHandler(nowhere, maxDeaths)] }).prepare()
  const writer = createWriter(store, seed)
  const watch = new Watch(evidence)
  const problems: string[] = []
  {
    await using team = new Team(engines, { place, evidence: file, maxDeaths, consumers: ['effects'] })
    const writing = keepWriting(writer, watch)
    try {
      for (let kill = 1; kill <= kills; kill++) {
        const member = team.member(random.below(team.size))
        await member.running
        await untilMoment(member)
        await team.kill(member)
        watch.look()
        const underWay = watch.underWay(member.name)
        if (underWay > 0) tally.underWay++
        if (underWay > 3) tally.sideBySide++
        team.replace(member)
        await noteDone()
        writing.check()
        onKill?.(kill)
      }
    } finally {
      await writing.stop()
    }
    if (!(await settled(store, writer))) problems.push(`Not everything had its outcome after ${endMs} ms.`)
    await team.stop()
    problems.push(...team.problems)
  }
  watch.look()
  const { open: held } = await outcomesIn(store, subscription, writer.written)
  problems.push(...(await verify(store)))
  const verdict = judge(evidence.lines, writer.written, held)
  problems.push(...verdict.problems)
  const happened = { kills, killsUnderWay: tally.underWay, killsSideBySide: tally.sideBySide, ...verdict }
  const needed = ['kills', 'killsUnderWay', 'effects', 'repeated', 'retried', 'parked'] as const
  for (const name of needed) if (happened[name] === 0) problems.push(`The run proves nothing: ${name} is 0.`)
  if (problems.length === 0) await rm(folder, { recursive: true })
  else problems.push(`What the outside saw is in ${file}.`)
  const seconds = Math.round(performance.now() - begun) / 1_000
  return { ok: problems.length === 0, store: place.store, engines, seed, ...happened, problems, seconds }

  /** Some die before they have done anything, some after a while, and some in the middle of a lot. */
  async function untilMoment({ name }: Member): Promise<void> {
    const dice = random.below(10)
    if (dice < 2) return setTimeout(random.below(100))
    const [begins, sideBySide] = [1 + random.below(80), 4 + random.below(8)]
    const isSoFar = () => (dice < 6 ? watch.begins(name) >= begins : watch.underWay(name) >= sideBySide)
    const deadline = performance.now() + patienceMs
    while (!isSoFar() && performance.now() < deadline) {
      await setTimeout(1)
      watch.look()
    }
    await setTimeout(random.below(8))
  }

  /** The engine may have died before it could tell; the store knows all the same. */
  async function noteDone(): Promise<void> {
    const pending = writer.written.filter(({ id }) => !watch.isFinished(id))
    const { done, open } = await outcomesIn(store, subscription, pending)
    watch.held = open.length
    evidence.note(done.map((id): Line => ({ phase: 'finished', process: 'store', id })))
    watch.look()
  }
}

/** What is going on, as far as the lines tell. */
class Watch {
  readonly #evidence: Evidence
  readonly #begins = new Map<string, number>()
  readonly #underWay = new Map<string, number>()
  readonly #finished = new Set<string>()
  #seen = 0
  /** How many were held when the store was last asked. */
  held = 0

  constructor(evidence: Evidence) {
    this.#evidence = evidence
  }

  look(): void {
    this.#evidence.pull()
    const { lines } = this.#evidence
    for (; this.#seen < lines.length; this.#seen++) {
      const { phase, process, id } = lines[this.#seen] as Line
      if (phase === 'finished') this.#finished.add(id)
      else this.#underWay.set(process, this.underWay(process) + (phase === 'begin' ? 1 : -1))
      if (phase === 'begin') this.#begins.set(process, this.begins(process) + 1)
    }
  }

  begins(process: string): number {
    return this.#begins.get(process) ?? 0
  }

  underWay(process: string): number {
    return this.#underWay.get(process) ?? 0
  }

  isFinished(id: string): boolean {
    return this.#finished.has(id)
  }

  /** How many need nothing more: what waits behind a refused event is no backlog. */
  get settled(): number {
    return this.#finished.size + this.held
  }
}

/** Appends in the background, so that there is always something to do, until it is told to stop. */
function keepWriting(writer: Writer, watch: Watch) {
  let isOver = false
  let failed: unknown
  const run = (async () => {
    while (!isOver) {
      watch.look()
      if (writer.written.length - watch.settled < backlog) await writer.appendSome()
      else await setTimeout(2)
    }
  })().catch((error: unknown) => {
    failed = error
  })
  return {
    check: () => {
      if (failed) throw failed
    },
    stop: async () => {
      isOver = true
      await run
      if (failed) throw failed
    },
  }
}

async function settled(store: Store, { written }: Writer): Promise<boolean> {
  const deadline = performance.now() + endMs
  while ((await outcomesIn(store, subscription, written)).pending > 0) {
    if (performance.now() > deadline) return false
    await setTimeout(50)
  }
  return true
}

async function verify(store: Store): Promise<string[]> {
  const engine = createEngine({ store, subscriptions: [effectsHandler(nowhere, maxDeaths)] })
  const { ok, differences } = await engine.verify(subscription)
  return ok ? [] : differences.map((difference) => `verify: ${JSON.stringify(difference)}`)
}

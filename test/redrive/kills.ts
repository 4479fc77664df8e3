import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { createEngine, createLog, type Store } from 'holdfast'
import { createRandom } from 'holdfast/testing'
import { found } from './asking.ts'
import { foldOf, handlerOf, steps } from './consumers.ts'
import { openStore } from './engine.ts'
import { EngineProcess } from './engine-process.ts'

export interface KillResult {
  readonly seed: number
  readonly kills: number
  /** While a redrive was under way. */
  readonly killsInRedrive: number
  readonly letters: number
  readonly liveEvents: number
  /** Effects of the handler that were had more than once: their process died before it could say so. */
  readonly repeated: number
  readonly problems: readonly string[]
}

export interface KillOptions {
  readonly seed: number
  readonly kills: number
  readonly lanes: number
  readonly perLane: number
  /** Of a PostgreSQL database; a file of SQLite if there is none. */
  readonly url?: string
}

const subscriptions = ['walks', 'calls'] as const

/**
 * Holds all lanes of a fold and of a handler, asks for a redrive of both, by two operators at once, and kills the engine with -9 again and
 * again while that goes on and live events of the same keys arrive. Then lets one finish, and looks at what is there.
 */
export async function runKills({ seed, kills, lanes, perLane, url }: KillOptions): Promise<KillResult> {
  const random = createRandom(seed)
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-redrive-'))
  const place = url ?? join(folder, 'store.db')
  const effects = join(folder, 'effects')
  await writeFile(effects, '')
  let started = 0
  const begin = (hasBug: boolean) => new EngineProcess({ store: place, name: `engine-${++started}`, effects, hasBug })
  const store = await openStore(place)
  const other = await openStore(place)
  try {
    const log = createLog({ store, events: steps })
    const written = new Map<string, number>()
    const append = async (key: string, count: number) => {
      const before = written.get(key) ?? 0
      written.set(key, before + count)
      await log.append(
        key,
        Array.from({ length: count }, (_, i) => ({ type: 'Stepped' as const, data: { n: before + i + 1 } })),
      )
    }
    for (let lane = 0; lane < lanes; lane++) await append(`key-${lane}`, perLane)
    {
      await using first = begin(true)
      await first.until('ready')
      await first.finish()
    }

    const ids = await askTwice(store, other, lanes)
    const progress = async () => {
      const all = await Promise.all(ids.map((id) => found(store, id)))
      return {
        isRunning: all.some(({ status }) => status === 'running'),
        letters: all.reduce((sum, one) => sum + one.letters, 0),
      }
    }
    let killsInRedrive = 0
    let liveEvents = 0
    for (let kill = 0; kill < kills; kill++) {
      await using engine = begin(false)
      await engine.until('ready')
      const before = await progress()
      // Every other one gets on with it first, however slow the machine is; the rest die whenever it is.
      const mustGetOn = kill % 2 === 0
      const until = performance.now() + (mustGetOn ? 30_000 : 30 + random.below(250))
      let now = before
      do {
        await append(`key-${random.below(lanes)}`, 1 + random.below(3))
        liveEvents++
        await setTimeout(2)
        now = await progress()
      } while (performance.now() < until && !(mustGetOn && (!now.isRunning || now.letters > before.letters)))
      await engine.kill()
      if (now.isRunning && now.letters > 0) killsInRedrive++
    }
    {
      await using last = begin(false)
      await last.until('ready')
      for (let i = 0; i < 20; i++) await append(`key-${random.below(lanes)}`, 1)
      const over = async () =>
        (await Promise.all(ids.map((id) => found(store, id)))).every(({ status }) => status !== 'running')
      for (const until = performance.now() + 60_000; !(await over()) && performance.now() < until; )
        await setTimeout(100)
      await last.finish()
    }
    const { problems, repeated } = await judge(store, ids, written, effects)
    const letters = (await Promise.all(ids.map((id) => found(store, id)))).reduce((sum, one) => sum + one.letters, 0)
    return { seed, kills, killsInRedrive, letters, liveEvents, repeated, problems }
  } finally {
    await other.close()
    await store.close()
    await rm(folder, { recursive: true })
  }
}

/** Two operators ask for the same at once. Between them each lane is asked for once. */
async function askTwice(store: Store, other: Store, lanes: number): Promise<string[]> {
  const ids: string[] = []
  for (const subscription of subscriptions) {
    const request = {
      subscription,
      act: 'redrive',
      filter: { status: 'parked' },
      reason: 'the bug is fixed',
      at: Date.now(),
      expected: undefined,
      rate: undefined,
      stages: [],
      maxFailures: undefined,
    } as const
    const asked = await Promise.all([
      store.redrives.ask({ ...request, id: `${subscription}-ann`, by: 'ann' }),
      other.redrives.ask({ ...request, id: `${subscription}-bob`, by: 'bob' }),
    ])
    const own = asked.flatMap((outcome) => (outcome.outcome === 'asked' ? [outcome.redrive] : []))
    const total = own.reduce((sum, one) => sum + one.lanes, 0)
    if (total !== lanes) throw new Error(`${subscription}: ${total} lanes were asked for, of ${lanes}.`)
    ids.push(...own.map(({ id }) => id))
  }
  return ids
}

async function judge(store: Store, ids: readonly string[], written: ReadonlyMap<string, number>, effects: string) {
  const problems: string[] = []
  for (const id of ids) {
    const { status, byState } = await found(store, id)
    if (status !== 'done' || byState.done === 0 || byState.failed + byState.passed + byState.left > 0)
      problems.push(`${id} is ${status}: ${JSON.stringify(byState)}`)
  }
  const engine = createEngine({ store, subscriptions: [foldOf(false), handlerOf(false, effects)] })
  for (const name of subscriptions) {
    const { ok, differences, counts } = await engine.verify(name)
    if (!ok) problems.push(`${name}: ${JSON.stringify(differences.slice(0, 3))}`)
    if (counts.held > 0) problems.push(`${name}: ${counts.held} are held`)
    const letters = await store.letters.list({ subscription: name, limit: 1_000_000 })
    const twice = letters.filter(({ attempts }) => attempts.length > 1).length
    if (twice > 0) problems.push(`${name}: ${twice} letters failed again`)
  }
  const walks = engine.read(foldOf(false))
  for (const [key, n] of written) {
    const row = (await walks.get(key))?.data
    if (row?.last !== n || row.count !== n || row.outOfOrder > 0)
      problems.push(`${key} of ${n} steps is ${JSON.stringify(row)}`)
  }
  return { problems, repeated: judgeEffects(written, effects, problems) }
}

/** Each at least once, and none before the one before it; again only with the key it had, and only what was not committed. */
function judgeEffects(written: ReadonlyMap<string, number>, effects: string, problems: string[]): number {
  const idempotencyKeys = new Map<string, string>()
  const last = new Map<string, number>()
  let repeated = 0
  for (const line of readFileSync(effects, 'utf8').split('\n').slice(0, -1)) {
    const [key, n, idempotencyKey] = JSON.parse(line) as [string, number, string]
    const before = last.get(key) ?? 0
    if (n > before + 1) problems.push(`${key}: the effect of ${n} came after that of ${before}`)
    if (n <= before) repeated++
    if ((idempotencyKeys.get(`${key}/${n}`) ?? idempotencyKey) !== idempotencyKey)
      problems.push(`${key}: the effect of ${n} had another key when it was repeated`)
    idempotencyKeys.set(`${key}/${n}`, idempotencyKey)
    last.set(key, n)
  }
  for (const [key, n] of written) {
    if (last.get(key) !== n) problems.push(`${key}: the last effect is that of ${last.get(key)}, not of ${n}`)
  }
  return repeated
}

import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createEngine, defineSubscription } from 'holdfast'
import { createChance } from '../../../src/testing/simulation/chance.ts'
import { compareWithOracle } from '../../crash/compare.ts'
import { openStore, type Place } from '../../handlers/place.ts'
import { judgeEffects } from '../judge.ts'
import type { Effect } from '../scene.ts'
import { differenceOf, stateOf } from '../state.ts'
import { type ChildSettings, ledger, postings, teller } from './child.ts'

export interface RealOptions {
  readonly store: 'sqlite' | 'postgres'
  readonly seed: number
  /** How many points, drawn by the seed; all of them unless said. */
  readonly most?: number
  readonly jobs?: number
  /** Makes an empty database on a server; only for PostgreSQL. */
  readonly createDatabase?: (name: string) => Promise<string>
  readonly onPoint?: (done: number, of: number) => void
}

export interface RealResult {
  readonly ok: boolean
  readonly store: 'sqlite' | 'postgres'
  readonly seed: number
  /** How many writes a process makes that nobody kills. */
  readonly writes: number
  readonly points: number
  /** Died at its point; the others made fewer writes than the one that was counted, and lived. */
  readonly kills: number
  readonly violations: number
  readonly failed: readonly { readonly point: string; readonly problems: readonly string[] }[]
  readonly seconds: number
}

/** Everything with which a process changes anything outside of it. */
const systemCalls = ['write', 'writev', 'pwrite64', 'sendto', 'sendmsg', 'fsync', 'fdatasync']
const child = fileURLToPath(new URL('child.ts', import.meta.url))

/** Why it can't be done here, if so. */
export function whyNot(): string | undefined {
  const { error, status } = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true'])
  if (error) return 'There is no strace here.'
  return status === 0 ? undefined : 'strace may not trace processes here.'
}

/** Kills a real process at its nth write, for every n that it has, and lets another one go on. */
export async function runReal(options: RealOptions): Promise<RealResult> {
  const { store, seed, jobs = 1, most = Number.POSITIVE_INFINITY, onPoint = () => undefined } = options
  const begun = performance.now()
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-points-'))
  try {
    const counted = await placeOf('counted')
    const all = await writesOf(counted, join(folder, 'trace'))
    const expected = await endingOf(counted)
    const chance = createChance(seed, store)
    const chosen = all.map((point) => ({ point, at: chance.u32() })).toSorted((a, b) => a.at - b.at)
    const points = chosen.slice(0, most).map(({ point }) => point)
    const failed: { point: string; problems: readonly string[] }[] = []
    const first = [...(await problemsOf(counted))]
    if (first.length > 0) failed.push({ point: 'none', problems: first })
    let next = 0
    let kills = 0
    let done = 0
    await Promise.all(
      Array.from({ length: jobs }, async () => {
        while (next < points.length) {
          const point = points[next++] as Point
          const place = await placeOf(`${point.call}-${point.nth}`)
          const wasKilled = await dieAt(place, point)
          kills += wasKilled ? 1 : 0
          if (wasKilled) await live(place)
          const problems = [...(await problemsOf(place)), ...differenceOf(expected, await endingOf(place))]
          if (problems.length > 0) failed.push({ point: `${point.call} ${point.nth}`, problems })
          onPoint(++done, points.length)
        }
      }),
    )
    return {
      ok: failed.length === 0,
      store,
      seed,
      writes: all.length,
      points: points.length,
      kills,
      violations: failed.length,
      failed: failed.slice(0, 10),
      seconds: Math.round(performance.now() - begun) / 1_000,
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }

  async function placeOf(name: string): Promise<ChildSettings> {
    const evidence = join(folder, `${name}.effects`)
    if (store === 'sqlite') return { place: { store, file: join(folder, `${name}.db`) }, evidence }
    const url = await options.createDatabase?.(`point_${name.replace('-', '_')}`)
    return { place: { store, url: url ?? '' }, evidence }
  }
}

interface Point {
  readonly call: string
  /** 1 for the first of these calls. */
  readonly nth: number
}

/** All writes of a process that nobody kills. */
async function writesOf(settings: ChildSettings, trace: string): Promise<Point[]> {
  const { code, errors } = await traced(settings, ['-o', trace])
  if (code !== 0) throw new Error(`The process ended with ${code}: ${errors}`)
  const found = new Map<string, Map<string, number>>()
  // `1234 pwrite64(22, …`: each thread counts for itself.
  for (const [, thread = '', call = ''] of (await readFile(trace, 'utf8')).matchAll(/^(\d+) +(\w+)\(/gm)) {
    const ofCall = found.get(call) ?? new Map<string, number>()
    found.set(call, ofCall.set(thread, (ofCall.get(thread) ?? 0) + 1))
  }
  return [...found].flatMap(([call, threads]) =>
    Array.from({ length: Math.max(...threads.values()) }, (_, i) => ({ call, nth: i + 1 })),
  )
}

/** Whether it died there. What it would have written then, it has not. */
async function dieAt(settings: ChildSettings, { call, nth }: Point): Promise<boolean> {
  const { code, signal, errors } = await traced(settings, [
    '-o',
    '/dev/null',
    '-e',
    `inject=${call}:signal=KILL:when=${nth}`,
  ])
  if (code === 0) return false
  if (code === 137 || signal === 'SIGKILL') return true
  throw new Error(`The process ended with ${signal ?? code}: ${errors}`)
}

async function live(settings: ChildSettings): Promise<void> {
  const { code, errors } = await run(process.execPath, argumentsOf(settings))
  if (code !== 0) throw new Error(`The next process ended with ${code}: ${errors}`)
}

function traced(settings: ChildSettings, options: readonly string[]) {
  const what = ['-f', '-qq', '-e', `trace=${systemCalls.join(',')}`, ...options]
  return run('strace', [...what, process.execPath, ...argumentsOf(settings)])
}

function argumentsOf(settings: ChildSettings): string[] {
  return ['--conditions=@holdfast/source', child, JSON.stringify(settings)]
}

function run(command: string, args: readonly string[]) {
  // The second and all later processes start four times faster.
  const env = { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'holdfast-crash-compile-cache') }
  const started = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env })
  let errors = ''
  started.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  return new Promise<{ code: number | null; signal: NodeJS.Signals | null; errors: string }>((resolve, reject) => {
    started.on('error', reject).on('close', (code, signal) => resolve({ code, signal, errors }))
  })
}

async function endingOf({ place }: ChildSettings): Promise<string[]> {
  await using store = await openStore(place)
  return await stateOf(store)
}

async function problemsOf({ place, evidence }: ChildSettings): Promise<string[]> {
  const subscriptions = [ledger, teller(evidence)].map((consumer) => defineSubscription(consumer))
  const lines = existsSync(evidence) ? (await readFile(evidence, 'utf8')).split('\n').filter(Boolean) : []
  const effects = lines.map((text) => JSON.parse(text) as Effect)
  const problems = judgeEffects({ effects }, subscriptions)
  const done = new Set(effects.map(({ key, n }) => `${key}-${n}`))
  for (const [key, amounts] of Object.entries(postings))
    for (const [i] of amounts.entries())
      if (!done.has(`${key}-${i + 1}`)) problems.push(`I1 ${key}-${i + 1} had no effect`)
  {
    await using store = await openStore(place)
    const engine = createEngine({ store, subscriptions })
    for (const { name } of subscriptions) {
      const { ok, differences } = await engine.verify(name)
      if (!ok) problems.push(`I1 ${name}: ${JSON.stringify(differences)}`)
    }
  }
  return [...problems, ...(await oracle(place))]
}

/** Worked out by hand, where the tables can be read by hand. */
async function oracle(place: Place): Promise<string[]> {
  if (place.store !== 'sqlite') return []
  const written = new Map(
    Object.entries(postings).map(([key, amounts]) => [
      key,
      amounts.map((amount, i) => ({ n: i + 1, amount, id: `${key}-${i + 1}` })),
    ]),
  )
  return (await compareWithOracle(place.file, written)).problems
}

import { createLog, defineSubscription, type Engine, type Failure, type Policy } from '../../src/index.ts'
import { bank, createWorld, credited, heldOf, type World } from '../fixtures.ts'
import { createMortal, type Mortal } from '../mortal.ts'
import { calm, fill, noting, stateOf } from '../noting.ts'
import { noChance } from '../policy/timetable.ts'
import type { Cause } from './causes.ts'

/** What became of the event within ten minutes, and what was recorded. */
export interface Observed {
  readonly status: 'parked' | 'retrying' | 'waiting' | 'discarded' | 'blocked'
  readonly why: string
  /** How often it was tried, and how long after the first time the last one was. */
  readonly tries: number
  readonly tookMs: number
  /** How many attempts its letter has. */
  readonly recorded: number
  readonly failure: Failure | undefined
  /** Whether the others went on meanwhile. */
  readonly othersFlow: boolean
  /** Whether it went through by itself when the cause was gone. */
  readonly goesOn: boolean
}

const tenMinutes = 600_000

/** Lets it happen in the real engine, in virtual time: one event that fails, one behind it, and another lane beside them. */
export async function observe(cause: Cause, policy: Policy): Promise<Observed> {
  await using world = await createWorld()
  const stage = { isMended: false, life: undefined as Mortal | undefined }
  const { handler, calls, callsOf } = noting(
    world,
    ({ key, amount, ctx }) => {
      if (stage.isMended || (cause.is !== 'everywhere' && (key !== 'bad' || amount !== 1))) return undefined
      if (cause.is !== 'deadly') return cause.act?.(ctx)
      stage.life?.die()
      return new Promise(() => undefined)
    },
    {
      failure: policy,
      timeout: '5s',
      ...(cause.is === 'breaker open' && { breaker: { key: ({ key }) => key } }),
    },
  )
  await prepare(world, cause)
  const subscription = defineSubscription(handler, { unknown: 'hold' })
  const options = { ...calm(world), random: noChance }
  const isDeadly = cause.is === 'deadly'
  const engine = isDeadly ? await survive(world, subscription, stage) : world.engine([subscription], options)
  if (!isDeadly) await engine.start()
  await pass(world, tenMinutes)

  const observed = await look(engine, world)
  const failed = cause.is === 'everywhere' ? calls : calls.filter(({ key, amount }) => key === 'bad' && amount === 1)
  const times = failed.map(({ at }) => at)
  await createLog({ store: world.store, events: bank }).append('well', [credited(3)])
  await pass(world, tenMinutes / 5)
  const othersFlow = cause.is !== 'everywhere' && callsOf('well').includes(3)
  stage.isMended = true
  if (cause.is === 'breaker open') await world.operator().resetBreaker('notify:bad', 'a test')
  await pass(world, tenMinutes)
  const goesOn = callsOf('bad').includes(2)
  return { ...observed, tries: times.length, tookMs: (times.at(-1) ?? 0) - (times[0] ?? 0), othersFlow, goesOn }
}

async function prepare(world: World, { is }: Cause): Promise<void> {
  const log = createLog({ store: world.store, events: bank })
  if (is === 'misfit') await log.raw.append('bad', [{ type: 'Credited', data: { amount: 'much' } }])
  else if (is === 'unknown type') await log.raw.append('bad', [{ type: 'Strange', data: {} }])
  else await log.append('bad', [credited(1)])
  await log.append('well', [credited(1)])
  await log.append('bad', [credited(2)])
  await log.append('well', [credited(2)])
  if (is === 'everywhere') await fill(world, ['c', 'd', 'e', 'f'], 1)
  if (is === 'breaker open') await world.operator().isolateBreaker('notify:bad', 'for the table', { new: true })
}

/** One process after the other, until one lives. */
async function survive(
  world: World,
  subscription: Parameters<World['engine']>[0] extends readonly (infer T)[] | undefined ? T : never,
  stage: { life: Mortal | undefined },
): Promise<Engine> {
  for (let lives = 0; lives < 6; lives++) {
    const life = createMortal(world, [subscription])
    stage.life = life
    await life.engine.start()
    await world.runtime.advance(15_000)
    if (!life.isDead) return life.engine
  }
  throw new Error('Nobody survived.')
}

async function look(engine: Engine, world: World): Promise<Pick<Observed, 'status' | 'why' | 'recorded' | 'failure'>> {
  const letters = await engine.letters({ subscription: 'notify', lane: 'bad' })
  const [letter] = letters
  const attempts = letter?.attempts ?? []
  const held = (await heldOf(engine, 'notify')).find(({ status }) => status !== 'queued')
  const state = await stateOf(engine)
  if (state?.state === 'blocked') {
    const failure = state.error as Failure | undefined
    return { status: 'blocked', why: state.by, recorded: attempts.length, failure: failure ?? attempts[0]?.failure }
  }
  const status = held?.status ?? letter?.status
  if (status !== 'parked' && status !== 'retrying' && status !== 'waiting' && status !== 'discarded')
    throw new Error(`It is ${status} at ${world.runtime.clock.mono()}.`)
  const why = letter?.endedReason ?? ''
  return { status, why, recorded: attempts.length, failure: attempts.at(-1)?.failure }
}

async function pass({ runtime }: World, ms: number): Promise<void> {
  for (let i = 0; i < 60; i++) await runtime.advance(ms / 60)
}

import { setTimeout } from 'node:timers/promises'
import { createRandom } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { canStartServers } from '../postgres/binaries.ts'
import { cloneDatabase, servers } from '../postgres/databases.ts'
import { startServer } from '../postgres/server.ts'
import { createScene, type Scene } from './scene.ts'
import { type Member, Team } from './team.ts'

// Processes that lose their partitions and are alive. To the others they look dead, and still nobody is to blame.

const patience = { timeout: 120_000 }
const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 2 ** 31)
const enoughTakeovers = 6
/** Nobody takes over from a process that was stopped in the middle of a commit to a file, so some turns are in vain. */
const mostTurns = 20
const stores = [
  { name: 'SQLite', server: undefined },
  ...servers.slice(0, 1).map((server) => ({ name: server.name, server })),
]

describe.for(stores)('in $name', ({ server }) => {
  it('processes that are stopped past their lease, again and again, park nothing', patience, async () => {
    await using database = server === undefined ? undefined : await cloneDatabase(server)
    await using scene = await createScene(['effects'], database?.url)
    // So many that a process that is not stopped in time leaves something for the next.
    await askFor(scene, 1_200)
    await using team = teamOf(scene, '500ms')
    const random = createRandom(seed)
    const members = [team.member(0), team.member(1)] as const
    let owner: Member | undefined
    for (const member of members) member.child.listen(({ kind }) => kind === 'claimed' && (owner = member))
    await Promise.all(members.map(({ running }) => running))
    members[1].child.signal('SIGSTOP')
    let takeovers = 0
    // One of the two is always stopped, and the other is stopped in the middle of what it took over.
    for (let turn = 0; takeovers < enoughTakeovers && turn < mostTurns; turn++) {
      const [active, other] = [members[turn % 2], members[(turn + 1) % 2]] as [Member, Member]
      // Who waits for a claim on the server goes on meanwhile with what it has, and may be through with all of it.
      if (server !== undefined && (await scene.isSettled())) await askFor(scene, 600)
      const count = 1 + random.below(5)
      // A file has one partition: who owns it still would do everything while a claim is waited for. On the server there are several to claim.
      const isOwner = !server && owner === active
      const claimed = isOwner ? Promise.resolve(false) : claimOf(active)
      const begun = beginsOf(scene, [active], count)
      active.child.signal('SIGCONT')
      if ((await claimed) && turn > 0) takeovers++
      const isDone = (await begun) || (server !== undefined && (await scene.isSettled()))
      expect(isDone || (await endsCommit(scene, other, active, count))).toBe(true)
      active.child.signal('SIGSTOP')
    }
    for (const { child } of members) child.signal('SIGCONT')
    await expectAllDone(scene, team)
    expect(takeovers).toBeGreaterThanOrEqual(enoughTakeovers)
  })
})

it.runIf(canStartServers())('a server that restarts, again and again, parks nothing', patience, async () => {
  await using server = await startServer({ inMemory: true, settings: { fsync: 'off' } })
  await using scene = await createScene(['effects'], await server.createDatabase('alive'))
  await askFor(scene, 1_000)
  await using team = teamOf(scene, '2s')
  await Promise.all([0, 1].map((slot) => team.member(slot).running))
  let inTheMiddle = 0
  for (let restarts = 0; restarts < 4; restarts++) {
    const begun = beginsOf(scene, [team.member(0), team.member(1)], 20)
    // Where the server took its time, they may be through with all that there was.
    await askFor(scene, 200)
    expect(await begun).toBe(true)
    if (!(await scene.isSettled())) inTheMiddle++
    await server.restart(restarts % 2 === 0 ? 'immediate' : 'fast')
    await untilItAnswers(scene)
  }
  await expectAllDone(scene, team)
  expect(inTheMiddle).toBeGreaterThan(0)
})

async function askFor(scene: Scene, events: number): Promise<void> {
  for (let i = 0; i < events; i++) await scene.ask({ key: `key-${i % 20}`, ms: 15 })
}

function teamOf({ place, file: evidence }: Scene, lease: '500ms' | '2s'): Team {
  return new Team(2, { place, evidence, lease, consumers: ['effects'] })
}

/** Whether a process takes a partition over from now on; not if it stopped the other in the middle of a commit. */
function claimOf({ child }: Member): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isClaimed: boolean) => {
      clearTimeout(timer)
      unlisten()
      resolve(isClaimed)
    }
    const unlisten = child.listen(({ kind }) => kind === 'claimed' && end(true))
    const timer = globalThis.setTimeout(() => end(false), 3_000)
  })
}

/** Waits until these processes have begun so many effects more. False if it doesn't come to that: they may own nothing. */
async function beginsOf({ evidence }: Scene, members: readonly Member[], count: number): Promise<boolean> {
  const names = new Set(members.map(({ name }) => name))
  evidence.pull()
  const from = evidence.lines.length
  const deadline = performance.now() + 15_000
  for (;;) {
    evidence.pull()
    const begun = evidence.lines.slice(from).filter(({ phase, process }) => phase === 'begin' && names.has(process))
    if (begun.length >= count) return true
    if (performance.now() > deadline) return false
    await setTimeout(2)
  }
}

/** One was stopped in the middle of a commit, and nobody writes to the file before it has ended that. */
async function endsCommit(scene: Scene, stopped: Member, waiting: Member, count: number): Promise<boolean> {
  stopped.child.signal('SIGCONT')
  const hasBegun = await beginsOf(scene, [stopped, waiting], count)
  stopped.child.signal('SIGSTOP')
  return hasBegun
}

/** A server that was restarted may not at first. What it has against us for longer is told by whoever asks next. */
async function untilItAnswers(scene: Scene): Promise<void> {
  const deadline = performance.now() + 15_000
  const answers = () =>
    scene.isSettled().then(
      () => true,
      () => performance.now() > deadline,
    )
  while (!(await answers())) await setTimeout(20)
}

async function expectAllDone(scene: Scene, team: Team): Promise<void> {
  const deadline = performance.now() + 60_000
  while (!(await scene.isSettled())) {
    if (performance.now() > deadline) break
    await setTimeout(20)
  }
  expect(await scene.openOf('effects')).toEqual([])
  expect(await scene.isSettled()).toBe(true)
  expect(await scene.differencesOf('effects')).toEqual([])
  await team.stop()
  expect(team.problems).toEqual([])
  expect(await scene.trialsOf('effects')).toBe(0)
}

import assert from 'node:assert/strict'
import type { Store } from '../../store.ts'
import type { Commit, CommitOutcome, Lease } from '../../subscription/subscription-store.ts'
import { commitParts, commitWith, everyPart, lookAtAll, makeScene, type Scene } from './commit-parts.ts'
import {
  at,
  begin,
  type Case,
  claimBy,
  claimed,
  commitOf,
  leaseMs,
  letter,
  row,
  type World,
  deedOf,
} from './fixtures.ts'

type Outcome = CommitOutcome['outcome'] | 'thrown'

/** Passes a commit to the store. */
type Door = (commit: Commit) => Promise<CommitOutcome>

interface Refused {
  readonly store: Store
  readonly world: World
  readonly scene: Scene
  readonly part: Partial<Commit>
  readonly give: Door
}

/** The reasons for which a commit is refused. Those that take the partition away come last: after them another lease is the newest. */
const refusals: Readonly<Record<string, (refused: Refused) => Promise<Outcome>>> = {
  'the checkpoint is elsewhere': ({ scene, part, give }) =>
    outcomeOf(give({ ...commitWith(scene.lease, part), from: 2, to: at(3) })),
  'another commit came first': ({ scene, part, give }) =>
    outcomeOf(give({ ...commitWith(scene.lease, part), commits: 99 })),
  'it is not the owner': ({ scene, part, give }) =>
    outcomeOf(give(commitWith({ ...scene.lease, owner: 'another' }, part))),
  'it is for another partition': ({ scene, part, give }) =>
    outcomeOf(give(commitWith({ ...scene.lease, partition: 1 }, part))),
  'the subscription is paused': async ({ store, scene, part, give }) => {
    await store.subscriptions.pause('s', { reason: 'a bug', at: 5 }, deedOf('pause'))
    const outcome = await outcomeOf(give(commitWith(scene.lease, part)))
    await store.subscriptions.resume('s', deedOf('resume'))
    return outcome
  },
  'a row is rejected': ({ scene, part, give }) =>
    outcomeOf(give(commitWith(scene.lease, { ...part, rows: [...(part.rows ?? []), takenRow('rejected')] }))),
  'a letter can not be written': ({ scene, part, give }) => {
    const twice = letter('twice', 1, 'parked')
    return outcomeOf(give(commitWith(scene.lease, { ...part, held: [...(part.held ?? []), twice, twice] })))
  },
  'its epoch is over': async ({ store, scene, part, give }) => {
    claimed(await store.subscriptions.claim(claimBy('one')))
    return outcomeOf(give(commitWith(scene.lease, part)))
  },
  'another owner has the partition': async ({ store, world, scene, part, give }) => {
    await world.elapse(leaseMs)
    claimed(await store.subscriptions.claim(claimBy('two')))
    return outcomeOf(give(commitWith(scene.lease, part)))
  },
}

const expected: Readonly<Record<string, Outcome>> = {
  'the subscription is paused': 'paused',
  'a row is rejected': 'rejected',
  'a letter can not be written': 'thrown',
}

export const refusalCases: Record<string, Case> = {
  ...Object.fromEntries(
    [...commitParts].map(([name, part]): [string, Case] => [
      `writes ${name} with its commit, and not when that is refused`,
      async (store, world) => {
        const scene = await sceneWithRule(store, world)
        const before = await part.look(store, scene)
        assert.notDeepEqual(before, part.written(scene))
        const give: Door = (commit) => store.subscriptions.commit(commit)
        const lease = await refuse({ store, world, scene, part: part.write(scene), give }, async (why) =>
          assert.deepEqual(await part.look(store, scene), before, why),
        )
        // An effect that has already happened is recorded, although the subscription is paused.
        await store.subscriptions.pause('s', { reason: 'a bug', at: 5 }, deedOf('pause'))
        const commit = { ...commitWith(lease, part.write(scene)), evenPaused: true } as const
        assert.deepEqual(await give(commit), { outcome: 'committed' })
        assert.deepEqual(await part.look(store, scene), part.written(scene))
      },
    ]),
  ),

  'writes every part with user SQL, and none when that is refused': async (store, world) => {
    const { notes } = world
    const scene = await sceneWithRule(store, world)
    await notes.make()
    const before = await lookAtAll(store, scene)
    const give: Door = (commit) =>
      store.subscriptions.perform(commit.lease, async (tx) => {
        await tx.run(() => notes.add(tx.handle, 1))
        return commit
      })
    const part = everyPart(scene)
    const lease = await refuse({ store, world, scene, part, give }, async (why) => {
      assert.deepEqual(await lookAtAll(store, scene), before, why)
      assert.deepEqual(await notes.all(), [], why)
    })
    assert.deepEqual(await give(commitWith(lease, part)), { outcome: 'committed' })
    const all = Object.fromEntries([...commitParts].map(([name, { written }]) => [name, written(scene)]))
    assert.deepEqual(await lookAtAll(store, scene), all)
    assert.deepEqual(await notes.all(), [1])
  },

  'renews the lease with a commit, and not when it is refused': async (store, { elapse }) => {
    const lease = await begin(store.subscriptions)
    const isFree = async () => {
      const [view] = await store.subscriptions.attend({ owner: 'two', subscriptions: ['s'], leaseMs: 10 * leaseMs })
      return view?.partitions[0]?.isFree
    }
    const refused = [{ from: 2, to: at(3) }, { commits: 99 }, { lease: { ...lease, epoch: lease.epoch - 1 } }]
    await elapse(leaseMs * 0.6)
    assert.equal((await store.subscriptions.commit(commitOf(lease))).outcome, 'committed')
    await elapse(leaseMs * 0.6)
    assert.equal(await isFree(), false)
    for (const wrong of refused)
      assert.equal((await store.subscriptions.commit({ ...commitOf(lease), ...wrong })).outcome, 'fenced')
    await elapse(leaseMs * 0.6)
    assert.equal(await isFree(), true)
  },
}

async function sceneWithRule(store: Store, world: World): Promise<Scene> {
  const scene = await makeScene(store)
  await store.subscriptions.commit(commitWith(scene.lease, { rows: [takenRow('taken')] }))
  await world.addRule()
  return scene
}

/** Refuses it for every reason, and checks after each that nothing was written. Returns the newest lease. */
async function refuse(refused: Refused, check: (why: string) => Promise<void>): Promise<Lease> {
  for (const [why, attempt] of Object.entries(refusals)) {
    assert.equal(await attempt(refused), expected[why] ?? 'fenced', why)
    await check(why)
  }
  await refused.world.elapse(leaseMs)
  return claimed(await refused.store.subscriptions.claim(claimBy('three')))
}

async function outcomeOf(given: Promise<CommitOutcome>): Promise<Outcome> {
  try {
    return (await given).outcome
  } catch {
    return 'thrown'
  }
}

/** After the user has added the constraint, no two rows may have this owner. */
function takenRow(key: string) {
  return { ...row(key, 1), columns: [1, 'taken', null] }
}

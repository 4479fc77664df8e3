import assert from 'node:assert/strict'
import type { DeadLetter, NewLetter } from '../../dead-letter/letter.ts'
import { describeFailure } from '../../failure/failure.ts'
import type { RedriveProgress } from '../../redrive/redrive.ts'
import type { Store } from '../../store.ts'
import { noCounts } from '../../subscription/checkpoint.ts'
import type { Commit, LaneWrite, Lease, LetterChange, PartitionState } from '../../subscription/subscription-store.ts'
import { at, begin, commitOf, hold, letter, limits, newEvent, row, table } from './fixtures.ts'
import { requestOf } from './redrive.ts'

/** What a commit writes. The other fields define its owner, its precondition and its table. */
type Written = Exclude<keyof Commit, 'lease' | 'leaseMs' | 'from' | 'commits' | 'table' | 'evenPaused'>

/** The ways to write a field that a store may implement by different statements. */
interface Ways extends Record<Written, string> {
  readonly to: 'position'
  readonly at: 'time'
  readonly counts: 'each'
  readonly rows: 'new' | 'changed'
  readonly lanes: 'held' | 'moved' | 'flowing' | 'remembered'
  readonly held: NewLetter['status'] | 'logged' | 'incident' | 'revision'
  readonly letters: LetterChange['change'] | 'incident'
  readonly marks: 'ranges'
  readonly tried: 'position'
  readonly trial: 'begun'
  readonly endedTrials: 'ended'
  readonly acquitted: 'instance'
  readonly inbox: 'new' | 'changed'
  readonly redriven: RedriveProgress['state']
}

/** A part of a commit: what is committed, where it is visible, and the expected result. */
export interface Part {
  readonly write: (scene: Scene) => Partial<Commit>
  readonly look: (store: Store, scene: Scene) => Promise<unknown>
  readonly written: (scene: Scene) => unknown
}

/** A store in which every part has something to change. */
export interface Scene {
  readonly lease: Lease
  /** Held letters by lane. Each lane is for one part. */
  readonly letters: ReadonlyMap<string, NewLetter>
  /** Letters that are not held yet. */
  readonly fresh: Readonly<Record<Ways['held'], NewLetter>>
}

const bug = describeFailure(new TypeError('a bug'), 'permanent', 'fold')
const newBug = describeFailure(new RangeError('a new bug'), 'permanent', 'fold')
const sameBug = describeFailure(new SyntaxError('the same bug again'), 'transient', 'http')
const ending = { by: 'ann', reason: 'a duplicate' }
const revision = { number: 1, body: '{"a":1}', by: 'bob', reason: 'a typo', at: 3 }
const changes = ['resolved', 'discarded', 'failed', 'status', 'incident'] as const satisfies Ways['letters'][]
const states = ['running', 'done', 'failed', 'passed', 'deferred'] as const satisfies RedriveProgress['state'][]
const heldLanes = ['moved', 'flowing', ...changes, ...states.map((state) => `redriven-${state}`)]

export async function makeScene(store: Store): Promise<Scene> {
  const lease = await begin(store.subscriptions)
  const letters = new Map(heldLanes.map((lane) => [lane, { ...letter(lane, 1, 'parked'), failure: bug }]))
  const held = [...letters.values()]
  await store.subscriptions.commit({
    ...commitOf(lease),
    held,
    lanes: held.map((one) => hold(one, 1)),
    rows: [row('changed', 1)],
    marks: [[2, 2]],
    tried: 3,
    inbox: [{ key: 'changed', result: '1', until: undefined }],
  })
  for (const [position, instance] of [
    [5, 'ended'],
    [6, 'acquitted'],
  ] as const)
    await store.subscriptions.commit({ ...commitOf(lease), trial: { position, instance } })
  for (const state of states) {
    const asked = await store.redrives.ask(requestOf(`r-${state}`, { lane: `redriven-${state}` }))
    assert.equal(asked.outcome, 'asked')
  }
  await store.log.append('logged', [newEvent('logged-1')], 'any')
  const [event] = (await store.log.readAll(0, limits)).events
  assert.ok(event)
  return {
    lease,
    letters,
    fresh: {
      parked: letter('new-parked', 1, 'parked'),
      waiting: letter('new-waiting', 2, 'waiting'),
      retrying: letter('new-retrying', 1, 'retrying'),
      queued: letter('new-queued', 2, 'queued'),
      resolved: letter('new-resolved', 1, 'resolved'),
      discarded: { ...letter('new-discarded', 1, 'discarded'), ending },
      logged: { lane: 'logged', sequence: 1, status: 'queued', logged: true, event, failure: undefined },
      incident: { ...letter('new-incident', 1, 'parked'), failure: newBug },
      revision: { ...letter('new-revision', 1, 'parked'), revision },
    },
  }
}

/** Every part. A new field of `Commit`, status or change without an entry here does not compile. */
const parts = {
  to: {
    position: checkpoint(
      () => ({ to: at(7) }),
      ({ position, eventId, eventType, eventTime }) => ({ position, eventId, eventType, eventTime }),
      at(7),
    ),
  },
  at: {
    time: checkpoint(
      () => ({ at: 77 }),
      ({ committedAt }) => committedAt,
      77,
    ),
  },
  counts: {
    each: checkpoint(
      () => ({ counts: { applied: 1, duplicate: 2, filtered: 3, held: 4, discarded: 5 } }),
      ({ counts }) => counts,
      { applied: 1, duplicate: 2, filtered: 3, held: 4, discarded: 5 },
    ),
  },
  rows: { new: rowOf('new', 1), changed: rowOf('changed', 2) },
  lanes: {
    held: laneOf(
      'held',
      () => hold(letter('held', 1, 'parked'), 9),
      (lane) => lane?.since,
      9,
    ),
    moved: laneOf(
      'moved',
      ({ letters }) => {
        const { hold: known, ...write } = hold(letters.get('moved') as NewLetter, 1)
        return { ...write, hold: known && { ...known, status: 'retrying', dueAt: 50, tries: 2, redrive: 'r' } }
      },
      (lane) => lane && [lane.status, lane.dueAt, lane.tries, lane.redrive],
      ['retrying', 50, 2, 'r'],
    ),
    flowing: laneOf(
      'flowing',
      () => ({ lane: 'flowing', hold: undefined, done: undefined }),
      (lane) => lane,
      undefined,
    ),
    remembered: {
      write: () => ({ lanes: [{ lane: 'remembered', hold: undefined, done: 4 }] }),
      look: async ({ letters }) => (await letters.laneVersions('s', ['remembered'])).get('remembered'),
      written: () => 4,
    },
  },
  held: {
    parked: heldAs('parked', ({ status, lane }) => [status, lane], ['parked', 'new-parked']),
    waiting: heldAs('waiting', ({ status, sequence }) => [status, sequence], ['waiting', 2]),
    retrying: heldAs('retrying', ({ status }) => status, 'retrying'),
    queued: heldAs('queued', ({ status }) => status, 'queued'),
    resolved: heldAs('resolved', ({ status, endedBy }) => [status, endedBy], ['resolved', 'engine']),
    discarded: heldAs('discarded', ({ status, endedReason }) => [status, endedReason], ['discarded', ending.reason]),
    logged: heldAs('logged', ({ status, event }) => [status, event.id], ['queued', 'logged-1']),
    incident: {
      ...heldAs('incident', () => undefined, undefined),
      look: ({ letters }) => incidentOf({ letters }, newBug.fingerprint),
      written: () => ['open', 1],
    },
    revision: {
      ...heldAs('revision', () => undefined, undefined),
      look: async ({ letters }, { fresh }) =>
        (await letters.revisions({ subscription: 's', position: fresh.revision.event.position })).map(
          ({ isTakenBack: _isTakenBack, ...one }) => one,
        ),
      written: () => [revision],
    },
  },
  letters: {
    resolved: change('resolved', (position) => ({ change: 'resolved', position, by: 'ann', reason: 'paid' }), [
      'resolved',
      'ann',
      'paid',
      1,
    ]),
    discarded: change('discarded', (position) => ({ change: 'discarded', position, ending }), [
      'discarded',
      ending.by,
      ending.reason,
      1,
    ]),
    failed: change('failed', (position) => ({ change: 'failed', position, status: 'retrying', failure: bug }), [
      'retrying',
      undefined,
      undefined,
      2,
    ]),
    status: change('status', (position) => ({ change: 'status', position, status: 'waiting' }), [
      'waiting',
      undefined,
      undefined,
      1,
    ]),
    incident: {
      ...change('incident', (position) => ({ change: 'failed', position, status: 'parked', failure: sameBug }), []),
      look: ({ letters }) => incidentOf({ letters }, sameBug.fingerprint),
      written: () => ['open', 1],
    },
  },
  marks: {
    ranges: stateOf(
      () => ({ marks: [[8, 9]] }),
      ({ marks }) => marks,
      [[8, 9]],
    ),
  },
  tried: {
    position: stateOf(
      () => ({ tried: 12 }),
      ({ tried }) => tried,
      12,
    ),
  },
  trial: {
    begun: stateOf(
      () => ({ trial: { position: 9, instance: 'begun' } }),
      ({ trials }) => trials.some(({ position, instance }) => position === 9 && instance === 'begun'),
      true,
    ),
  },
  endedTrials: {
    ended: stateOf(
      () => ({ endedTrials: [5] }),
      ({ trials }) => trials.some(({ position }) => position === 5),
      false,
    ),
  },
  acquitted: {
    instance: stateOf(
      () => ({ acquitted: 'acquitted' }),
      ({ trials }) => trials.some(({ instance }) => instance === 'acquitted'),
      false,
    ),
  },
  inbox: { new: mark('new'), changed: mark('changed') },
  redriven: {
    running: progress('running'),
    done: progress('done'),
    failed: progress('failed'),
    passed: progress('passed'),
    deferred: progress('deferred'),
  },
} satisfies { readonly [Field in Written]: Readonly<Record<Ways[Field], Part>> }

export const commitParts: ReadonlyMap<string, Part> = new Map(
  Object.entries(parts).flatMap(([field, ways]) =>
    Object.entries<Part>(ways).map(([way, part]) => [`${field} (${way})`, part] as const),
  ),
)

/** All parts in one commit. */
export function everyPart(scene: Scene): Partial<Commit> {
  const all: Record<string, unknown> = {}
  for (const part of commitParts.values()) {
    for (const [field, value] of Object.entries(part.write(scene))) {
      const before = all[field]
      all[field] = Array.isArray(before) ? [...(before as unknown[]), ...(value as unknown[])] : value
    }
  }
  return all
}

export async function lookAtAll(store: Store, scene: Scene): Promise<Record<string, unknown>> {
  const seen: Record<string, unknown> = {}
  for (const [name, { look }] of commitParts) seen[name] = await look(store, scene)
  return seen
}

/** The whole commit for a part, with a table for its rows. */
export function commitWith(lease: Lease, part: Partial<Commit>): Commit {
  return { ...commitOf(lease), at: 1, counts: noCounts(), ...part }
}

function stateOf(write: Part['write'], of: (known: PartitionState) => unknown, written: unknown): Part {
  return {
    write,
    look: async ({ subscriptions }) => {
      const known = await subscriptions.load('s', 0)
      assert.ok(known)
      return of(known)
    },
    written: () => written,
  }
}

function checkpoint(
  write: Part['write'],
  of: (known: PartitionState['checkpoint']) => unknown,
  written: unknown,
): Part {
  return stateOf(write, (known) => of(known.checkpoint), written)
}

function rowOf(key: string, version: number): Part {
  return {
    write: () => ({ rows: [row(key, version)] }),
    look: async ({ rows }) => (await rows.load(table, [key])).get(key)?.json,
    written: () => row(key, version).json,
  }
}

function laneOf(
  lane: string,
  write: (scene: Scene) => LaneWrite,
  of: (known: Awaited<ReturnType<Store['letters']['lane']>>) => unknown,
  written: unknown,
): Part {
  return {
    write: (scene) => ({ lanes: [write(scene)] }),
    look: async ({ letters }) => of(await letters.lane('s', lane)),
    written: () => written,
  }
}

function heldAs(way: Ways['held'], of: (letter: DeadLetter) => unknown, written: unknown): Part {
  return {
    write: ({ fresh }) => ({ held: [fresh[way]] }),
    look: async ({ letters }, { fresh }) => {
      const { position } = fresh[way].event
      return (await letters.list({ subscription: 's', position })).map(of)[0]
    },
    written: () => written,
  }
}

function change(lane: Ways['letters'], to: (position: number) => LetterChange, written: unknown): Part {
  const positionIn = ({ letters }: Scene) => (letters.get(lane) as NewLetter).event.position
  return {
    write: (scene) => ({ letters: [to(positionIn(scene))] }),
    look: async ({ letters }, scene) => {
      const [found] = await letters.list({ subscription: 's', position: positionIn(scene) })
      return found && [found.status, found.endedBy, found.endedReason, found.attemptsTotal]
    },
    written: () => written,
  }
}

async function incidentOf({ letters }: Pick<Store, 'letters'>, fingerprint: string): Promise<unknown> {
  const [incident] = await letters.incidents({ subscription: 's', fingerprint, limit: 1 })
  return incident && [incident.state, incident.letters]
}

function mark(key: string): Part {
  return {
    write: () => ({ inbox: [{ key, result: '2', until: undefined }] }),
    look: async ({ inbox }) => (await inbox.find('s', [key], 0)).get(key)?.result,
    written: () => '2',
  }
}

function progress(next: RedriveProgress['state']): Part {
  return {
    write: () => ({ redriven: [{ redrive: `r-${next}`, lane: `redriven-${next}`, letters: 2, state: next }] }),
    look: async ({ redrives }) =>
      (await redrives.lanes(`r-${next}`, undefined, 0, 1)).map(({ state: known, letters }) => [known, letters])[0],
    written: () => [next, 2],
  }
}

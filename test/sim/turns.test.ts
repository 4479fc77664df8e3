import { describe, expect, it } from 'vitest'
import { History } from '../../src/testing/simulation/history.ts'
import { Turns } from './turns.ts'
import { type Known, walk } from './walk.ts'

const known: readonly Known[] = ['a-1', 'a-2', 'b-1', 'a-3'].map((id, i) => ({
  id,
  position: i + 1,
  lane: id.slice(0, 1),
  partition: 0,
  flaw: 'none',
}))

/** A process that tries events of one partition, and what the store has of that. */
class World {
  readonly #history = new History()
  readonly #order: 'key' | 'partition'
  #epoch = 0
  #who = ''

  constructor(order: 'key' | 'partition' = 'key') {
    this.#order = order
    this.claims('one')
  }

  get turns(): Turns {
    const turns = new Turns({ order: this.#order }, known)
    walk(this.#history, 'calls', known, [turns])
    return turns
  }

  claims(who: string): void {
    this.#who = who
    const lease = { subscription: 'calls', partition: 0, owner: who, epoch: ++this.#epoch }
    this.#effect('subscriptions.claim', [], { outcome: 'claimed', lease, isInherited: true })
  }

  tries(id: string, how = 'done'): void {
    const number = this.#history.happenings.length
    const about = { subscription: 'calls', id, number }
    this.#history.add(number, this.#who, 'begin', '', about)
    this.#history.add(number, this.#who, 'end', '', { ...about, how })
  }

  commits(position: number, part: object = {}): void {
    const lease = { subscription: 'calls', partition: 0, owner: this.#who, epoch: this.#epoch }
    const commit = { lease, to: { position }, held: [], letters: [], lanes: [], ...part }
    this.#effect('subscriptions.commit', [commit], { outcome: 'committed' })
  }

  loses(): void {
    this.#history.add(this.#history.happenings.length, this.#who, 'lost', 'subscriptions.commit #7 answer')
  }

  #effect(what: string, about: readonly unknown[], value: unknown): void {
    const { length } = this.#history.happenings
    this.#history.add(length, this.#who, 'effect', what, { what, about, value })
  }
}

const held = (position: number) => ({ held: [{ event: { position }, status: 'parked' }] })

describe('the order of attempts', () => {
  it('is kept by an owner that does one event of a lane after the other, before the store has any of it', () => {
    const world = new World()
    for (const id of ['a-1', 'b-1', 'a-2', 'a-3']) world.tries(id)
    expect(world.turns.problems).toEqual([])
    expect(world.turns.ordered).toBeGreaterThan(0)
  })

  it.for([
    ['an event before it failed', (world: World) => world.tries('a-1', 'transient')],
    ['an event before it is held', (world: World) => world.commits(1, held(1))],
    [
      'only an owner before had done it',
      (world: World) => {
        world.tries('a-1')
        world.claims('two')
      },
    ],
  ] as const)('is broken by an event that is begun though %s', ([, before]) => {
    const world = new World()
    before(world)
    world.tries('a-2')
    expect(world.turns.problems).toEqual([expect.stringMatching(/^I2 a-2 was begun by \w+ before a-1, which has no/)])
  })

  it('is kept by an event whose predecessor has its outcome in the store', () => {
    const world = new World()
    world.commits(1, held(1))
    world.claims('two')
    world.commits(1, { letters: [{ change: 'resolved', position: 1 }] })
    world.tries('a-2')
    world.commits(2, { marks: [[4, 4]] })
    expect(world.turns.problems).toEqual([])
  })

  it.for([
    ['key', []],
    ['partition', ['I2 b-1 was begun by one before a-2, which has no outcome']],
  ] as const)('is that of the %s', ([order, problems]) => {
    const world = new World(order)
    world.commits(1)
    world.tries('b-1')
    world.commits(1, { marks: [[3, 3]] })
    expect(world.turns.problems).toEqual(problems)
  })

  it.for([
    ['the deaths of processes', 'parked', 'EVENT_DEADLY', []],
    ['any other failure', 'parked', 'X', ['I2 b-1 was begun by one before a-2, which has no outcome']],
    [
      'its handler, which passes it over',
      'discarded',
      'X',
      ['I2 b-1 was begun by one before a-2, which has no outcome'],
    ],
  ] as const)(
    'of a partition goes on before the store has that an event was left out for %s',
    ([, status, code, problems]) => {
      const world = new World('partition')
      world.commits(1)
      world.tries('b-1')
      world.commits(3, { held: [{ lane: 'a', event: { position: 2 }, status, failure: { code } }] })
      expect(world.turns.problems).toEqual(problems)
    },
  )
})

describe('what an owner has done', () => {
  it('is not begun again because the answer to its commit was lost', () => {
    const world = new World()
    world.tries('a-1')
    world.loses()
    world.tries('a-1')
    expect(world.turns.problems).toEqual(['I3 a-1 was done by one, and is begun by it again'])
    expect(world.turns.afterUnknown).toBe(1)
  })

  it('may be done again by the next owner, for which it has no outcome', () => {
    const world = new World()
    world.tries('a-1')
    world.claims('two')
    world.tries('a-1')
    expect(world.turns.problems).toEqual([])
  })
})

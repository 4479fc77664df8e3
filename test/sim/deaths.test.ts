import { describe, expect, it } from 'vitest'
import { History } from '../../src/testing/simulation/history.ts'
import { Deaths } from './deaths.ts'
import { type Known, walk } from './walk.ts'

const known: readonly Known[] = [7, 8, 9].map((position) => {
  return {
    id: `event-${position}`,
    position,
    lane: `lane-${position}`,
    partition: position === 9 ? 2 : 1,
    flaw: 'none',
  }
})

/** Processes that try the events of one partition, one after the other, and what the store did for them. */
class World {
  readonly #history = new History()
  #epoch = 0

  get problems(): readonly string[] {
    const deaths = new Deaths(known)
    walk(this.#history, 'calls', known, [deaths])
    return deaths.problems
  }

  claims(who: string): void {
    const lease = { subscription: 'calls', partition: 1, owner: who, epoch: ++this.#epoch }
    this.#effect(who, 'subscriptions.claim', [], { value: { outcome: 'claimed', lease, isInherited: true } })
  }

  loads(who: string): void {
    this.looks(who)
    this.#effect(who, 'letters.heldLanes', ['calls', 1], { value: [] })
  }

  /** Whether its commit was made. */
  looks(who: string): void {
    this.#effect(who, 'subscriptions.load', ['calls', 1], { value: { epoch: this.#epoch } })
  }

  /** And dies. */
  tries(who: string, position: number): void {
    this.claims(who)
    this.loads(who)
    this.#commits(who, { trial: { position, instance: who } })
  }

  /** And is well long after. */
  isLate(who: string): void {
    this.#commits(who, { trial: { position: 0, instance: who } })
  }

  /** Without a word, and over that. */
  dies(who: string, position: number): void {
    this.#ends(who, position, 'died')
  }

  /** And lives. */
  fails(who: string, position: number): void {
    this.#ends(who, position, 'transient')
  }

  /** And takes back that it was tried alone. */
  putsOff(who: string): void {
    this.#commits(who, { acquitted: 'its instance' })
  }

  #ends(who: string, position: number, how: string): void {
    const number = this.#history.happenings.length
    const about = { subscription: 'calls', id: `event-${position}`, number }
    this.#history.add(number, who, 'begin', '', about)
    this.#history.add(number, who, 'end', '', { ...about, how })
  }

  learns(who: string, redrive: string, position: number, act: string): void {
    this.#effect(who, 'redrives.due', ['calls', 1, 10], {
      value: [{ redrive, lane: `lane-${position}`, position, act }],
    })
  }

  acquits(who: string, outcome: object = { value: undefined }): void {
    this.#effect(who, 'subscriptions.acquit', ['calls', 1], outcome)
  }

  /** At the same instant it says what it tries: that had to wait until then, and was told of later than what it had waited with. */
  acquitsAndTries(who: string, position: number): void {
    this.claims(who)
    this.loads(who)
    this.acquits(who)
    this.#commits(who, { trial: { position, instance: who } }, this.#history.happenings.length - 1)
  }

  blames(who: string, position: number): void {
    this.#commits(who, { held: [{ event: { position }, failure: { code: 'EVENT_DEADLY' } }] })
  }

  #commits(who: string, part: object, atMs?: number): void {
    const lease = { subscription: 'calls', partition: 1, owner: who, epoch: this.#epoch }
    const commit = { lease, held: [], letters: [], lanes: [], ...part }
    this.#effect(who, 'subscriptions.commit', [commit], { value: { outcome: 'committed' } }, atMs)
  }

  #effect(who: string, what: string, about: readonly unknown[], outcome: object, atMs?: number): void {
    const { length } = this.#history.happenings
    this.#history.add(atMs ?? length, who, 'effect', what, { what, about, ...outcome })
  }
}

describe('who judges the deaths of processes', () => {
  it('finds who is blamed though others died over another event as well', () => {
    const world = new World()
    world.tries('first', 0)
    world.tries('second', 7)
    world.tries('third', 8)
    world.claims('judge')
    world.loads('judge')
    world.acquits('third')
    world.looks('judge')
    world.blames('judge', 7)
    expect(world.problems).toEqual(['P9 event-7 is blamed for deaths that were not its own'])
  })

  it('goes by what the owner has read, not by what was there when it claimed', () => {
    const world = new World()
    world.tries('first', 0)
    world.tries('second', 7)
    world.tries('again', 7)
    world.tries('third', 8)
    world.claims('judge')
    // It only lost its partition, and says so before the judge comes to read.
    world.acquits('third')
    world.loads('judge')
    world.blames('judge', 7)
    expect(world.problems).toEqual([])
  })

  it('counts those who took back what they had tried for the living', () => {
    const world = new World()
    world.tries('first', 0)
    world.tries('second', 7)
    world.tries('again', 7)
    world.acquits('first')
    world.claims('judge')
    world.loads('judge')
    world.blames('judge', 7)
    expect(world.problems).toEqual(['P9 event-7 is blamed for 3 deaths'])
  })

  it('counts those who could not take it back for the dead', () => {
    const world = new World()
    world.tries('first', 0)
    world.tries('second', 7)
    world.tries('again', 7)
    world.acquits('first', { error: new Error('terminating connection') })
    world.claims('judge')
    world.loads('judge')
    world.blames('judge', 7)
    expect(world.problems).toEqual([])
  })

  it('knows that what is told of at the instant of a word taken back was there before', () => {
    const world = new World()
    world.tries('first', 0)
    world.tries('second', 7)
    world.tries('again', 7)
    world.acquitsAndTries('third', 8)
    world.claims('judge')
    world.loads('judge')
    world.blames('judge', 7)
    expect(world.problems).toEqual([])
  })

  it('counts what one tries after it had taken its word back', () => {
    const world = new World()
    world.tries('first', 0)
    world.tries('second', 7)
    world.acquits('third')
    world.tries('third', 8)
    world.claims('judge')
    world.loads('judge')
    world.blames('judge', 7)
    expect(world.problems).toEqual(['P9 event-7 is blamed for deaths that were not its own'])
  })

  it.for([
    ['nobody', undefined, ['P9 event-7 was let go, and is blamed again without a try']],
    ['somebody tried another one', 8, ['P9 event-7 was let go, and is blamed again without a try']],
    ['somebody tried it', 7, []],
    ['somebody tried everything', 0, []],
  ] as const)('finds who is blamed though a person let it go, and since then %s', ([, tried, problems]) => {
    const world = new World()
    world.tries('first', 0)
    world.tries('second', 7)
    world.tries('third', 7)
    world.learns('third', 'a wish', 7, 'redrive')
    if (tried !== undefined) world.tries('fourth', tried)
    world.claims('judge')
    world.loads('judge')
    world.blames('judge', 7)
    expect(world.problems).toEqual(problems)
  })

  it('finds none who is blamed for what one died over since a person let it go, without a word', () => {
    const world = new World()
    world.tries('first', 0)
    world.tries('second', 7)
    world.tries('again', 7)
    world.learns('second', 'a wish', 7, 'redrive')
    world.dies('second', 7)
    world.claims('judge')
    world.loads('judge')
    world.blames('judge', 7)
    expect(world.problems).toEqual([])
  })

  it('finds who is blamed though a person let it go, and since then somebody tried everything elsewhere', () => {
    const world = new World()
    world.claims('first')
    world.learns('first', 'a wish', 9, 'redrive')
    world.tries('second', 0)
    world.blames('second', 9)
    expect(world.problems).toContain('P9 event-9 was let go, and is blamed again without a try')
  })

  it('counts those half who were well long after they had begun it', () => {
    const world = new World()
    world.tries('first', 0)
    for (const who of ['second', 'third']) {
      world.tries(who, 7)
      world.isLate(who)
    }
    world.claims('judge')
    world.loads('judge')
    world.blames('judge', 7)
    expect(world.problems).toEqual(['P9 event-7 is blamed for deaths that were not its own'])
  })

  it('counts one who put off what it had tried for the living', () => {
    const world = new World()
    world.tries('first', 0)
    world.tries('second', 7)
    world.putsOff('second')
    world.claims('judge')
    world.loads('judge')
    world.blames('judge', 7)
    expect(world.problems).toEqual(['P9 event-7 is blamed for deaths that were not its own'])
  })

  it.for([
    [3, ['P9 event-7 has killed 5 processes, and is not parked']],
    [4, []],
  ] as const)('begins anew where an event failed %s times in a row in one process', ([failures, problems]) => {
    const world = new World()
    for (let deaths = 0; deaths < 5; deaths++) {
      world.claims(`process-${deaths}`)
      for (let i = 0; i < failures; i++) world.fails(`process-${deaths}`, 7)
      world.dies(`process-${deaths}`, 7)
    }
    expect(world.problems).toEqual(problems)
  })

  it.for([
    ['the same wish', 'first', 'redrive', ['P9 event-7 has killed 5 processes, and is not parked']],
    ['another one', 'second', 'redrive', []],
    ['one to leave it out', 'second', 'discard', ['P9 event-7 has killed 5 processes, and is not parked']],
  ] as const)(
    'begins anew where an event is let go by another wish, and not by the same: %s',
    ([, redrive, act, problems]) => {
      const world = new World()
      world.claims('one')
      for (let deaths = 0; deaths < 5; deaths++) {
        world.learns('one', deaths < 3 ? 'first' : redrive, 7, deaths < 3 ? 'redrive' : act)
        world.dies('one', 7)
      }
      expect(world.problems).toEqual(problems)
    },
  )
})

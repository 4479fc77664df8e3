import { describe, expect, it } from 'vitest'
import type { Trial } from '../../subscription/subscription-store.ts'
import { deadly, Suspicion } from './suspicion.ts'

const trial = (position: number, instance = position === 0 ? 'watched' : 'dead') => ({ position, instance })

describe('suspicion', () => {
  it('is over where nobody died', () => {
    const none = new Suspicion([], false, 'me', 4)
    expect([none.isOver, none.isAlone, none.mayHaveTrials, none.hasTrials]).toEqual([true, false, false, false])
    expect([none.trialOf(5), none.over(5), none.end(), none.deathsOver(5)]).toEqual([undefined, [], [], undefined])
  })

  it('records the work as a whole after a first death, once', () => {
    const watched = new Suspicion([], true, 'me', 4)
    expect([watched.isOver, watched.isAlone, watched.mayHaveTrials]).toEqual([false, false, false])
    expect(watched.trialOf(5)).toEqual(trial(0, 'me'))
    expect([watched.mayHaveTrials, watched.hasTrials]).toEqual([true, false])
    watched.committed({ trial: trial(0, 'me') })
    expect([watched.trialOf(5), watched.trialOf(6), watched.trying]).toEqual([undefined, undefined, undefined])
    expect([watched.hasTrials, watched.trials]).toEqual([true, [0, 0]])
    expect(watched.over(5)).toEqual([])
    expect(watched.end()).toEqual([0, 0])
    expect([watched.isOver, watched.end()]).toEqual([true, []])
  })

  it('tries one at a time after a second death, and each is recorded before', () => {
    const alone = new Suspicion([trial(0)], true, 'me', 4)
    expect([alone.isAlone, alone.hasTrials, alone.trying]).toEqual([true, true, undefined])
    expect(alone.trialOf(5)).toEqual(trial(5, 'me'))
    alone.committed({ trial: trial(5, 'me') })
    expect([alone.trying, alone.trialOf(5), alone.trials]).toEqual([5, undefined, [0, 0, 5]])
    // The next try is recorded anew.
    expect(alone.over(5)).toEqual([5])
    expect([alone.trying, alone.trialOf(5)]).toEqual([5, trial(5, 'me')])
    alone.committed({ endedTrials: [4] })
    expect(alone.trying).toBe(5)
    alone.committed({ endedTrials: [5], trial: trial(6, 'me') })
    expect(alone.trying).toBe(6)
    alone.committed({ endedTrials: [6] })
    expect([alone.trying, alone.trials]).toEqual([undefined, [0, 0]])
  })

  it('takes its own word back when an event has to wait, and nobody else’s', () => {
    const alone = new Suspicion([trial(0), trial(5)], true, 'me', 9)
    expect(alone.putOff(5)).toBeUndefined()
    alone.committed({ trial: trial(5, 'me') })
    expect([alone.putOff(6), alone.trialOf(5)]).toEqual([undefined, undefined])
    expect([alone.putOff(5), alone.trying, alone.trialOf(5)]).toEqual(['me', 5, trial(5, 'me')])
    alone.committed({ acquitted: 'me' })
    expect([alone.trying, alone.trials]).toEqual([undefined, [0, 0, 5]])
    alone.committed({ acquitted: 'me', trial: trial(6, 'me') })
    expect(alone.trying).toBe(6)
    const watched = new Suspicion([], true, 'me', 4)
    watched.committed({ trial: trial(0, 'me') })
    expect([watched.putOff(5), watched.trialOf(5)]).toEqual([undefined, undefined])
  })

  describe('of one that failed, and is to be tried again,', () => {
    it('goes on when all else is over: it is alone, and on record', () => {
      const alone = new Suspicion([trial(0), trial(5), trial(6)], true, 'me', 9)
      expect([alone.follows(5), alone.failed(5), alone.follows(5)]).toEqual([false, [], true])
      // Who died over it counts, and nothing else.
      expect(alone.end()).toEqual([0, 0, 6])
      expect([alone.isOver, alone.isAlone, alone.follows(5), alone.follows(7)]).toEqual([true, false, true, false])
      expect([alone.trialOf(5), alone.trialOf(7)]).toEqual([trial(5, 'me'), undefined])
      alone.committed({ trial: trial(5, 'me') })
      expect([alone.trying, alone.trialOf(5)]).toEqual([5, undefined])
      expect([alone.putOff(5), alone.failed(5), alone.trialOf(5)]).toEqual(['me', [], trial(5, 'me')])
    })

    it('is over with its outcome', () => {
      const one = new Suspicion([trial(0), trial(5)], true, 'me', 9)
      one.failed(5)
      one.end()
      one.committed({ trial: trial(5, 'me') })
      expect([one.over(5), one.follows(5), one.trialOf(5)]).toEqual([[5], false, undefined])
      one.committed({ endedTrials: [5] })
      expect(one.over(5)).toEqual([])
    })

    it('is over when it has failed as often as processes may die, and what was before does not count any more', () => {
      const one = new Suspicion([trial(0), trial(5), trial(5, 'late')], true, 'me', 5)
      expect([one.failed(5), one.failed(5), one.failed(5), one.failed(5)]).toEqual([[], [], [], []])
      expect([one.failed(5), one.follows(5), one.deathsOver(5)]).toEqual([[5], false, undefined])
      expect([one.forget(5), one.forget(6)]).toEqual([[5], []])
    })

    it('is on record no more when it is let off and has its outcome at once', () => {
      const one = new Suspicion([], true, 'me', 4)
      one.failed(5)
      one.end()
      one.failed(5)
      one.committed({ trial: trial(5, 'me') })
      expect([one.failed(5), one.trying, one.over(5)]).toEqual([[], 5, [5]])
      one.committed({ endedTrials: [5] })
      expect(one.trying).toBeUndefined()
    })

    it('is a death over something else when it comes to others, though it is over', () => {
      const one = new Suspicion([trial(5), trial(6, 'second')], true, 'me', 2)
      one.forget(5)
      expect(one.deathsOver(6)).toBeUndefined()
      expect(new Suspicion([trial(6)], true, 'me', 2).deathsOver(6)).toBe(2)
    })

    it('is nothing of its own while all is watched', () => {
      const watched = new Suspicion([], true, 'me', 4)
      watched.failed(5)
      expect([watched.follows(5), watched.trialOf(5)]).toEqual([false, trial(0, 'me')])
      watched.end()
      expect([watched.follows(5), watched.trialOf(5)]).toEqual([true, trial(5, 'me')])
    })

    it('goes on where it is the first of its lane, whoever has the partition next', () => {
      const next = new Suspicion([trial(5), trial(6)], false, 'me', 4, new Set([5, 7]))
      expect([next.isOver, next.follows(5), next.follows(6), next.follows(7)]).toEqual([true, true, false, false])
      expect(next.trialOf(5)).toEqual(trial(5, 'me'))
      const own = new Suspicion([trial(5, 'me')], false, 'me', 4, new Set([5]))
      expect(own.follows(5)).toBe(false)
    })

    it('ends with its blame, and nothing of that stays', () => {
      const one = new Suspicion([trial(5), trial(5, 'late')], false, 'me', 3, new Set([5]))
      expect([one.deathsOver(5), one.trialOf(5)]).toEqual([3, undefined])
      expect(one.over(5)).toEqual([5])
      one.blame(5)
      expect([one.deathsOver(5), one.follows(5)]).toEqual([undefined, false])
    })
  })

  it('tries alone at once where two or three deaths are enough', () => {
    expect([2, 3, 4].map((deaths) => new Suspicion([], true, 'me', deaths).isAlone)).toEqual([true, true, false])
    expect(new Suspicion([trial(5)], true, 'me', 2).deathsOver(5)).toBe(2)
    expect(new Suspicion([trial(5)], true, 'me', 3).deathsOver(5)).toBeUndefined()
    expect(new Suspicion([trial(5), trial(5, 'second')], true, 'me', 3).deathsOver(5)).toBe(3)
  })

  it('does not count trials of its own', () => {
    const mine = new Suspicion([trial(0, 'me'), trial(5, 'me')], true, 'me', 4)
    expect([mine.isAlone, mine.deathsOver(5), mine.hasTrials]).toEqual([false, undefined, false])
  })

  it('counts no more what was taken back since, of the one that it is about to blame', () => {
    const many = new Suspicion([trial(0), trial(5), trial(5, 'alive'), trial(6, 'third')], true, 'me', 4)
    expect(many.deathsOver(5)).toBe(4)
    many.recall(5, [trial(0), trial(5)])
    expect(many.deathsOver(5)).toBe(undefined)
    // What it ended itself is not in the store either, and was a death all the same.
    many.over(5)
    many.committed({ endedTrials: [5] })
    many.recall(6, [trial(0), trial(6, 'third')])
    expect([many.deathsOver(6), many.isAlone]).toEqual([undefined, true])
    const both = [trial(5), trial(5, 'second')]
    const one = new Suspicion([trial(0), ...both], true, 'me', 4)
    one.recall(5, [trial(0), ...both, trial(5, 'me')])
    expect(one.deathsOver(5)).toBe(4)
    one.recall(5, [trial(0)])
    expect([one.deathsOver(5), one.trials]).toEqual([undefined, [0, 0]])
  })

  it('counts no more what was taken back since of what was tried as a whole', () => {
    const both = [trial(5), trial(5, 'second')]
    const one = new Suspicion([trial(0, 'alive'), trial(0), ...both], true, 'me', 5)
    expect(one.deathsOver(5)).toBe(5)
    one.recall(5, [trial(0), ...both])
    expect([one.deathsOver(5), one.isAlone, one.trials]).toEqual([undefined, true, [0, 0, 5, 5]])
  })

  it('blames the one that two processes tried alone, and died', () => {
    const fourth = new Suspicion([trial(0), trial(5), trial(5, 'second')], true, 'me', 4)
    expect([fourth.deathsOver(5), fourth.deathsOver(6)]).toEqual([4, undefined])
    // Its trials are kept until the end: they count when it comes to others.
    expect([fourth.trialOf(5), fourth.over(5)]).toEqual([undefined, []])
    expect(fourth.trials).toEqual([0, 0, 5, 5])
  })

  it('counts a death half that came long after the event was begun', () => {
    const late = (instance: string) => [trial(0, instance), trial(5, instance)]
    const all = ['a', 'b', 'c', 'd'].map(late)
    const deaths = (trials: Trial[][]) => new Suspicion([trial(0), ...trials.flat()], true, 'me', 4).deathsOver(5)
    expect([all.slice(0, 2), all.slice(0, 3), all].map(deaths)).toEqual([undefined, undefined, 6])
    expect(deaths([...all.slice(0, 2), [trial(5)]])).toBe(5)
    expect(deaths([...all.slice(0, 1), [trial(5)]])).toBeUndefined()
  })

  it('records that it is well long after an event was begun, once, and ends that with the event', () => {
    const alone = new Suspicion([trial(0)], true, 'me', 4)
    expect(alone.lateTrial()).toBeUndefined()
    alone.committed({ trial: trial(5, 'me') })
    expect([alone.lateTrial(), alone.lateOver(5)]).toEqual([trial(0, 'me'), undefined])
    alone.committed({ trial: trial(0, 'me') })
    expect([alone.trying, alone.lateTrial(), alone.lateOver(5), alone.lateOver(6)]).toEqual([
      5,
      undefined,
      'me',
      undefined,
    ])
    alone.committed({ acquitted: 'me', endedTrials: alone.over(5), trial: trial(6, 'me') })
    expect([alone.trying, alone.lateOver(6)]).toEqual([6, undefined])
  })

  it('blames nobody before there were as many deaths as it takes', () => {
    expect(new Suspicion([trial(0), trial(5)], true, 'me', 4).deathsOver(5)).toBeUndefined()
    expect(new Suspicion([trial(0), trial(5), trial(5, 'second')], true, 'me', 4).deathsOver(5)).toBe(4)
    expect(new Suspicion([trial(0), trial(5), trial(5, 'second')], true, 'me', 5).deathsOver(5)).toBeUndefined()
    // One alone is never enough.
    expect(new Suspicion([trial(0), trial(0, 'other'), trial(5)], true, 'me', 4).deathsOver(5)).toBeUndefined()
  })

  it('wants two deaths over one event where there was one over another as well', () => {
    const both = [trial(5), trial(6, 'second')]
    expect(new Suspicion(both, true, 'me', 2).deathsOver(5)).toBeUndefined()
    expect(new Suspicion([...both, trial(5, 'third')], true, 'me', 2).deathsOver(5)).toBe(3)
  })

  it('counts nothing any more of one that was blamed', () => {
    const fourth = new Suspicion([trial(0), trial(5), trial(5, 'second')], true, 'me', 4)
    fourth.blame(5)
    expect(fourth.deathsOver(5)).toBeUndefined()
    expect(fourth.trialOf(5)).toEqual(trial(5, 'me'))
    expect(fourth.over(5)).toEqual([5])
  })

  it('says how many died', () => {
    const failure = deadly(4, 'mails', 17)
    expect(failure).toMatchObject({ class: 'permanent', rule: 'crash', code: 'EVENT_DEADLY' })
    expect(failure.message).toContain('4 processes died while they tried this event. Either its function')
    expect(failure.message).toContain('or something outside did: the OOM killer, kill -9')
    expect(failure.message).toContain('holdfast dlq redrive mails --letter 17 --reason "<why>"')
    // All of them are one incident.
    expect(deadly(5, 'mails', 18).fingerprint).toBe(failure.fingerprint)
  })
})

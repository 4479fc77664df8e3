import { describe, expect, it } from 'vitest'
import type { PartitionState, Trial } from '../../subscription/subscription-store.ts'
import { PageTrials } from './page-trials.ts'
import { ExclusiveRun } from './exclusive-run.ts'

function cautious(trials: readonly Trial[], { isInherited = true, suspects = 2 } = {}) {
  const calls = { woken: 0, ms: 0 }
  const exclusiveRun = new ExclusiveRun({ now: () => 0, mono: () => calls.ms })
  const parts = {
    state: { trials } as unknown as PartitionState,
    isInherited,
    settings: { instance: 'me' },
    subscription: { name: 'sums' },
    exclusiveRun,
    wake: () => void calls.woken++,
  }
  return { caution: new PageTrials(parts, 4, suspects), exclusiveRun, calls }
}

const trial = (position: number, instance = position === 0 ? 'watched' : 'dead') => ({ position, instance })
const stranger = { wake: () => undefined }

describe('where nobody died', () => {
  it('runs beside others, and gives way to who wants to be alone', () => {
    const { caution, exclusiveRun, calls } = cautious([], { isInherited: false })
    expect([caution.isOver, caution.isAlone, caution.mayHaveTrials]).toEqual([true, false, false])
    expect([caution.endedWith(5), caution.leftOver, caution.trialOf(5)]).toEqual([[], [], undefined])
    expect(caution.admit()).toBe(true)
    expect(exclusiveRun.enter(stranger)).toBe(false)
    caution.dismiss()
    // It had ended, and does not end again.
    caution.dismiss()
    expect(exclusiveRun.enter(stranger)).toBe(true)
    expect([caution.admit(), calls.woken]).toEqual([false, 0])
    exclusiveRun.leave(stranger)
    expect([calls.woken, caution.admit()]).toEqual([1, true])
  })
})

describe('who ends', () => {
  it('ends what it has begun, and nothing else: others are still beside it', () => {
    const { caution, exclusiveRun } = cautious([], { isInherited: false })
    const running = { wake: () => undefined }
    const mayBeAlone = () => {
      const isAlone = exclusiveRun.enter(stranger)
      exclusiveRun.leave(stranger)
      return isAlone
    }
    exclusiveRun.begin(running)
    // It has not begun at all.
    caution.release()
    expect(mayBeAlone()).toBe(false)
    caution.admit()
    caution.dismiss()
    caution.dismiss()
    expect(mayBeAlone()).toBe(false)
    exclusiveRun.end()
    expect(mayBeAlone()).toBe(true)
  })
})

describe('after a death', () => {
  it('is alone for the trial of one event, and not for that of all, or for none', () => {
    const { caution } = cautious([])
    caution.trialOf(5)
    expect(caution.isOnTrial).toBe(false)
    const { caution: second } = cautious([trial(0)], { suspects: 9 })
    second.trialOf(5)
    expect(second.isOnTrial).toBe(true)
    second.committed({ trial: trial(5, 'me') })
    second.committed({ endedTrials: [5] })
    expect(second.isOnTrial).toBe(false)
    const { caution: third } = cautious([trial(0), trial(5), trial(5, 'second')], { suspects: 9 })
    // It is to blame, and not tried.
    expect([third.trialOf(5), third.isOnTrial]).toEqual([undefined, false])
  })

  it('records what it tries as a whole, and is over when as many have their outcome as are suspects', () => {
    const { caution } = cautious([])
    expect([caution.isOver, caution.isAlone, caution.leftOver]).toEqual([false, false, []])
    expect(caution.trialOf(5)).toEqual(trial(0, 'me'))
    expect(caution.mayHaveTrials).toBe(true)
    caution.committed({ trial: trial(0, 'me') })
    expect([caution.isOver, caution.trialOf(5), caution.leftOver]).toEqual([false, undefined, [0, 0]])
    expect([caution.endedWith(5, 1), caution.endedWith(5, 2)]).toEqual([[], [0, 0]])
    caution.committed({ endedTrials: [] }, 1)
    expect([caution.isOver, caution.trialOf(6), caution.endedWith(6, 1)]).toEqual([false, undefined, [0, 0]])
    caution.committed({ endedTrials: [0] }, 1)
    expect([caution.isOver, caution.endedWith(7), caution.leftOver]).toEqual([true, [], []])
  })

  it('ends when nothing is left to be tried', () => {
    const { caution } = cautious([])
    caution.end()
    expect(caution.isOver).toBe(true)
  })
})

describe('after deaths over what was recorded', () => {
  it('tries one at a time, alone, and stays so while it is on trial', () => {
    const { caution, exclusiveRun, calls } = cautious([trial(0)])
    exclusiveRun.begin(stranger)
    expect([caution.isAlone, caution.admit()]).toEqual([true, false])
    exclusiveRun.end()
    expect(caution.admit()).toBe(true)
    expect([caution.isOnTrial, caution.trialOf(5)]).toEqual([false, trial(5, 'me')])
    // The store may have it, though nobody knows.
    caution.dismiss()
    expect([caution.isOnTrial, exclusiveRun.begin(stranger)]).toEqual([true, false])
    caution.committed({ trial: trial(5, 'me') })
    expect(caution.isOnTrial).toBe(true)
    caution.dismiss(true)
    calls.ms = 60_000
    expect(exclusiveRun.begin(stranger)).toBe(false)
    caution.committed({ endedTrials: caution.endedWith(5) })
    caution.dismiss()
    expect(exclusiveRun.begin(stranger)).toBe(true)
  })

  it('goes on with the next at once where they are quick, and lets others have their turn before the next where not', () => {
    const { caution, exclusiveRun, calls } = cautious([trial(0)])
    caution.admit()
    expect(exclusiveRun.begin(stranger)).toBe(false)
    caution.dismiss(true)
    expect(exclusiveRun.begin(stranger)).toBe(false)
    calls.ms = 249
    expect(caution.admit()).toBe(true)
    calls.ms = 250
    caution.dismiss(true)
    expect([caution.admit(), exclusiveRun.begin(stranger)]).toEqual([false, true])
    exclusiveRun.leave(stranger)
    exclusiveRun.end()
    expect(caution.admit()).toBe(false)
    calls.ms = 500
    expect(caution.admit()).toBe(true)
    caution.dismiss()
    expect(exclusiveRun.begin(stranger)).toBe(true)
  })

  it('is not waited for without end between two of them', () => {
    const { caution, exclusiveRun, calls } = cautious([trial(0)])
    caution.admit()
    caution.dismiss(true)
    calls.ms = 5_000
    expect(exclusiveRun.begin(stranger)).toBe(false)
    calls.ms = 5_001
    expect([exclusiveRun.begin(stranger), caution.admit()]).toEqual([true, false])
  })

  it.for(['in doubt', 'on record'])('is on trial no more when the store knows that it lives: %s', (how) => {
    const { caution, exclusiveRun } = cautious([trial(0)])
    caution.admit()
    caution.trialOf(5)
    if (how === 'on record') caution.committed({ trial: trial(5, 'me') })
    caution.acquitted()
    expect([caution.isOnTrial, caution.trialOf(5)]).toEqual([false, trial(5, 'me')])
    caution.acquitted()
    caution.dismiss()
    expect(exclusiveRun.begin(stranger)).toBe(true)
  })

  it('is over when as many have their outcome as are suspects', () => {
    const { caution } = cautious([trial(0)])
    expect(caution.endedWith(5)).toEqual([5])
    caution.committed({ trial: trial(5, 'me') })
    caution.committed({ endedTrials: [5] })
    expect([caution.isOver, caution.endedWith(6)]).toEqual([false, [0, 0]])
    caution.committed({ endedTrials: [6] })
    expect([caution.isOver, caution.endedWith(7)]).toEqual([true, []])
  })

  it('refuses the one that is to blame, and no other, until it has that outcome', () => {
    const { caution } = cautious([trial(0), trial(5), trial(5, 'second')])
    expect(caution.refusalOf(5)).toMatchObject({ code: 'EVENT_DEADLY' })
    expect(caution.refusalOf(6)).toBeUndefined()
    caution.blame(5)
    expect(caution.refusalOf(5)).toBeUndefined()
  })

  it('lets the others go on when it does not', () => {
    const { caution, exclusiveRun } = cautious([trial(0)])
    caution.admit()
    caution.committed({ trial: trial(5, 'me') })
    caution.release()
    expect(exclusiveRun.begin(stranger)).toBe(true)
    exclusiveRun.end()

    const beside = cautious([])
    beside.caution.admit()
    beside.caution.release()
    expect(beside.exclusiveRun.enter(stranger)).toBe(true)
  })
})

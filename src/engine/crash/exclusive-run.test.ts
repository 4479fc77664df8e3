import { describe, expect, it } from 'vitest'
import { Solitude } from './exclusive-run.ts'

function asking() {
  const calls = { woken: 0, wake: () => void calls.woken++ }
  return calls
}

function quiet() {
  const time = { ms: 0 }
  const solitude = new Solitude({ now: () => 0, mono: () => time.ms })
  return { solitude, time }
}

describe('solitude', () => {
  it('lets any number run beside each other', () => {
    const { solitude } = quiet()
    expect([asking(), asking(), asking()].map((one) => solitude.begin(one))).toEqual([true, true, true])
  })

  it('lets nobody begin while somebody wants to be alone, and wakes it when the last has ended', () => {
    const { solitude } = quiet()
    const [running, alone, other] = [asking(), asking(), asking()]
    solitude.begin(running)
    solitude.begin(running)
    expect(solitude.enter(alone)).toBe(false)
    expect(solitude.begin(other)).toBe(false)
    solitude.end()
    expect([alone.woken, other.woken]).toEqual([0, 0])
    solitude.end()
    expect(alone.woken).toBe(1)
    expect(solitude.begin(other)).toBe(false)
    expect([solitude.enter(alone), solitude.enter(alone)]).toEqual([true, true])
    expect(solitude.begin(other)).toBe(false)
    const before = other.woken
    solitude.leave(alone)
    expect(other.woken).toBe(before + 1)
    expect(solitude.begin(other)).toBe(true)
  })

  it('has one alone at a time, and the next when that one leaves', () => {
    const { solitude } = quiet()
    const [first, second] = [asking(), asking()]
    expect([solitude.enter(first), solitude.enter(second)]).toEqual([true, false])
    solitude.leave(first)
    expect(second.woken).toBe(1)
    expect([solitude.enter(second), solitude.enter(first)]).toEqual([true, false])
  })

  it('goes on when somebody wants to be alone no more', () => {
    const { solitude } = quiet()
    const [running, fickle, other] = [asking(), asking(), asking()]
    solitude.begin(running)
    expect([solitude.enter(fickle), solitude.begin(other)]).toEqual([false, false])
    solitude.leave(fickle)
    expect([other.woken, solitude.begin(other)]).toEqual([1, true])
    solitude.leave(other)
    expect(solitude.begin(asking())).toBe(true)
  })

  it('lets in those that want to be alone in the order in which they came', () => {
    const { solitude } = quiet()
    const [first, second, third] = [asking(), asking(), asking()]
    solitude.enter(first)
    expect([solitude.enter(second), solitude.enter(third)]).toEqual([false, false])
    solitude.leave(first)
    // It had its turn. However soon it asks again, the others are before it.
    expect([solitude.enter(first), solitude.enter(third), solitude.enter(second)]).toEqual([false, false, true])
    solitude.leave(second)
    expect([solitude.enter(second), solitude.enter(first), solitude.enter(third)]).toEqual([false, false, true])
    solitude.leave(third)
    expect([solitude.enter(second), solitude.enter(first)]).toEqual([false, true])
  })

  it('lets those begin that came before the next who wants to be alone, though two of these take turns', () => {
    const { solitude } = quiet()
    const [first, second, beside, alsoBeside] = [asking(), asking(), asking(), asking()]
    solitude.enter(first)
    expect([solitude.begin(beside), solitude.enter(second), solitude.begin(alsoBeside)]).toEqual([false, false, false])
    solitude.leave(first)
    expect([beside.woken, second.woken, alsoBeside.woken]).toEqual([1, 0, 0])
    expect([solitude.enter(first), solitude.enter(second)]).toEqual([false, false])
    expect([solitude.begin(alsoBeside), solitude.begin(beside), solitude.begin(beside)]).toEqual([false, true, true])
    solitude.leave(beside)
    // It had its turn as well.
    expect(solitude.begin(beside)).toBe(false)
    solitude.end()
    expect(second.woken).toBe(0)
    solitude.end()
    expect([second.woken, solitude.enter(second)]).toEqual([1, true])
    solitude.leave(second)
    expect([solitude.enter(first), solitude.begin(alsoBeside)]).toEqual([false, true])
  })

  it('wakes whoever is next when somebody gives its place up', () => {
    const { solitude } = quiet()
    const [holder, beside, alone, last] = [asking(), asking(), asking(), asking()]
    solitude.enter(holder)
    expect([solitude.begin(beside), solitude.enter(alone), solitude.begin(last)]).toEqual([false, false, false])
    solitude.leave(holder)
    solitude.leave(beside)
    expect([alone.woken, last.woken]).toEqual([1, 0])
    solitude.leave(alone)
    expect([last.woken, solitude.begin(last)]).toEqual([1, true])
  })

  it('keeps the place of who changes its mind about what it waits for', () => {
    const { solitude } = quiet()
    const [holder, fickle, last] = [asking(), asking(), asking()]
    solitude.enter(holder)
    expect([solitude.enter(fickle), solitude.enter(last), solitude.begin(fickle)]).toEqual([false, false, false])
    solitude.leave(holder)
    expect([solitude.enter(last), solitude.begin(fickle)]).toEqual([false, true])
  })

  it('takes who begins beside others for alone no more', () => {
    const { solitude } = quiet()
    const [holder, alone] = [asking(), asking()]
    solitude.enter(holder)
    expect(solitude.begin(holder)).toBe(true)
    solitude.end()
    solitude.enter(holder)
    expect([solitude.enter(alone), solitude.begin(holder), alone.woken]).toEqual([false, false, 1])
    expect(solitude.enter(alone)).toBe(true)
  })

  it('wakes all that run beside each other, and lets them begin in any order, and others with them', () => {
    const { solitude } = quiet()
    const [holder, first, second, stranger] = [asking(), asking(), asking(), asking()]
    solitude.enter(holder)
    expect([solitude.begin(first), solitude.begin(second)]).toEqual([false, false])
    solitude.leave(holder)
    expect([first.woken, second.woken]).toEqual([1, 1])
    expect([stranger, second, first].map((one) => solitude.begin(one))).toEqual([true, true, true])
  })

  it('is not ended by one that waits and gives up, and nobody is woken by that', () => {
    const { solitude } = quiet()
    const [holder, fickle, beside] = [asking(), asking(), asking()]
    solitude.enter(holder)
    expect([solitude.enter(fickle), solitude.begin(beside)]).toEqual([false, false])
    solitude.leave(fickle)
    expect([beside.woken, solitude.begin(beside), solitude.enter(holder)]).toEqual([0, false, true])
  })

  it('has time for the next, if it was quick', () => {
    const { solitude, time } = quiet()
    const [holder, other] = [asking(), asking()]
    expect(solitude.hasTime(holder)).toBe(false)
    solitude.enter(holder)
    time.ms = 249
    expect([solitude.hasTime(holder), solitude.hasTime(other)]).toEqual([true, false])
    solitude.enter(holder)
    time.ms = 250
    expect(solitude.hasTime(holder)).toBe(false)
    solitude.leave(holder)
    solitude.enter(holder)
    expect(solitude.hasTime(holder)).toBe(true)
  })

  it('is kept for one that goes for its next, with what is left of its time', () => {
    const { solitude, time } = quiet()
    const [holder, alone, beside] = [asking(), asking(), asking()]
    solitude.enter(holder)
    time.ms = 100
    solitude.stepOut(holder)
    expect([solitude.enter(alone), solitude.begin(beside), alone.woken, beside.woken]).toEqual([false, false, 0, 0])
    time.ms = 200
    expect(solitude.enter(holder)).toBe(true)
    // It is in, and does not lose its place any more.
    time.ms = 6_000
    expect([solitude.enter(alone), solitude.begin(beside), solitude.hasTime(holder)]).toEqual([false, false, false])
    solitude.stepOut(holder)
    expect([alone.woken, solitude.enter(holder), solitude.enter(alone)]).toEqual([0, false, false])
    // For as long as it was alone, from when it first came.
    time.ms = 11_999
    expect(solitude.enter(alone)).toBe(false)
    solitude.leave(beside)
    time.ms = 12_000
    expect(solitude.enter(alone)).toBe(true)
  })

  it.for(['alone', 'beside'] as const)('does not wait without end for one that went for its next: %s', (how) => {
    const { solitude, time } = quiet()
    const [holder, next] = [asking(), asking()]
    const ask = () => (how === 'alone' ? solitude.enter(next) : solitude.begin(next))
    solitude.enter(holder)
    time.ms = 200
    solitude.stepOut(holder)
    time.ms = 5_200
    expect(ask()).toBe(false)
    time.ms = 5_201
    expect([ask(), solitude.enter(holder)]).toEqual([true, false])
  })

  it('calls the others when somebody asks and finds that it does not come back', () => {
    const { solitude, time } = quiet()
    const [holder, waiting, late] = [asking(), asking(), asking()]
    solitude.enter(holder)
    solitude.begin(waiting)
    solitude.stepOut(holder)
    time.ms = 5_001
    solitude.begin(late)
    expect(waiting.woken).toBe(1)
  })

  it('lets one in that comes back late, if nobody has asked meanwhile', () => {
    const { solitude, time } = quiet()
    const [holder, next] = [asking(), asking()]
    solitude.enter(holder)
    solitude.stepOut(holder)
    time.ms = 60_000
    expect([solitude.enter(holder), solitude.enter(next)]).toEqual([true, false])
  })

  it('is left by one that goes for its next and had its time, or was not alone', () => {
    const { solitude, time } = quiet()
    const [holder, waiting, next] = [asking(), asking(), asking()]
    solitude.enter(holder)
    expect([solitude.enter(waiting), solitude.enter(next)]).toEqual([false, false])
    solitude.stepOut(waiting)
    time.ms = 250
    solitude.stepOut(holder)
    expect([waiting.woken, next.woken, solitude.enter(next)]).toEqual([0, 1, true])
  })

  it('is left by one that goes for its next, and then begins beside others', () => {
    const { solitude } = quiet()
    const [holder, other] = [asking(), asking()]
    solitude.enter(holder)
    solitude.stepOut(holder)
    expect([solitude.begin(holder), solitude.begin(other)]).toEqual([true, true])
  })

  it('does not wait for one that was called and does not come', () => {
    const { solitude, time } = quiet()
    const [holder, away, next, last] = [asking(), asking(), asking(), asking()]
    solitude.enter(holder)
    expect([solitude.begin(away), solitude.enter(next), solitude.begin(last)]).toEqual([false, false, false])
    // It is not called yet.
    time.ms = 60_000
    solitude.leave(holder)
    expect([away.woken, next.woken, solitude.enter(next)]).toEqual([1, 0, false])
    time.ms = 119_999
    expect(solitude.enter(next)).toBe(false)
    time.ms = 120_000
    expect([solitude.begin(last), next.woken]).toEqual([false, 1])
    expect([solitude.enter(next), solitude.begin(away)]).toEqual([true, false])
    solitude.leave(next)
    expect([away.woken, last.woken]).toEqual([2, 2])
  })

  it('waits for one that was called for a while', () => {
    const { solitude, time } = quiet()
    const [holder, away, next] = [asking(), asking(), asking()]
    solitude.enter(holder)
    expect([solitude.begin(away), solitude.enter(next)]).toEqual([false, false])
    solitude.leave(holder)
    time.ms = 5_000
    expect(solitude.enter(next)).toBe(false)
    time.ms = 5_001
    expect(solitude.enter(next)).toBe(true)
  })

  it('is nobody’s for as long as it was somebody’s, where others waited to run', () => {
    const { solitude, time } = quiet()
    const [holder, next, beside] = [asking(), asking(), asking()]
    time.ms = 1_000
    solitude.enter(holder)
    expect([solitude.enter(next), solitude.begin(beside)]).toEqual([false, false])
    time.ms = 3_000
    solitude.leave(holder)
    expect([next.woken, beside.woken]).toEqual([0, 1])
    for (time.ms of [3_000, 4_999]) {
      expect([solitude.begin(beside), solitude.enter(next)]).toEqual([true, false])
      solitude.end()
    }
    time.ms = 5_000
    expect([solitude.begin(beside), solitude.enter(next), solitude.enter(holder)]).toEqual([false, true, false])
    solitude.leave(beside)
    // Nobody else waits to run.
    time.ms = 9_000
    solitude.leave(next)
    expect(solitude.enter(holder)).toBe(true)
  })

  it('lets in one that comes late, if nobody has asked meanwhile', () => {
    const { solitude, time } = quiet()
    const [holder, late, next] = [asking(), asking(), asking()]
    solitude.enter(holder)
    expect([solitude.enter(late), solitude.enter(next)]).toEqual([false, false])
    solitude.leave(holder)
    time.ms = 60_000
    expect([solitude.enter(late), solitude.enter(next)]).toEqual([true, false])
  })

  it('calls each once for its turn, however many end meanwhile', () => {
    const { solitude } = quiet()
    const [running, first, second] = [asking(), asking(), asking()]
    solitude.enter(running)
    expect([solitude.begin(first), solitude.begin(second)]).toEqual([false, false])
    solitude.leave(running)
    expect([solitude.begin(running), solitude.begin(running)]).toEqual([true, true])
    solitude.end()
    solitude.end()
    expect([first.woken, second.woken]).toEqual([1, 1])
  })
})

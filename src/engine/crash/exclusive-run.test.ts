import { describe, expect, it } from 'vitest'
import { ExclusiveRun } from './exclusive-run.ts'

function asking() {
  const calls = { woken: 0, wake: () => void calls.woken++ }
  return calls
}

function quiet() {
  const time = { ms: 0 }
  const exclusiveRun = new ExclusiveRun({ now: () => 0, mono: () => time.ms })
  return { exclusiveRun, time }
}

describe('an exclusive run', () => {
  it('lets any number run beside each other', () => {
    const { exclusiveRun } = quiet()
    expect([asking(), asking(), asking()].map((one) => exclusiveRun.begin(one))).toEqual([true, true, true])
  })

  it('lets nobody begin while somebody wants to be alone, and wakes it when the last has ended', () => {
    const { exclusiveRun } = quiet()
    const [running, alone, other] = [asking(), asking(), asking()]
    exclusiveRun.begin(running)
    exclusiveRun.begin(running)
    expect(exclusiveRun.enter(alone)).toBe(false)
    expect(exclusiveRun.begin(other)).toBe(false)
    exclusiveRun.end()
    expect([alone.woken, other.woken]).toEqual([0, 0])
    exclusiveRun.end()
    expect(alone.woken).toBe(1)
    expect(exclusiveRun.begin(other)).toBe(false)
    expect([exclusiveRun.enter(alone), exclusiveRun.enter(alone)]).toEqual([true, true])
    expect(exclusiveRun.begin(other)).toBe(false)
    const before = other.woken
    exclusiveRun.leave(alone)
    expect(other.woken).toBe(before + 1)
    expect(exclusiveRun.begin(other)).toBe(true)
  })

  it('has one alone at a time, and the next when that one leaves', () => {
    const { exclusiveRun } = quiet()
    const [first, second] = [asking(), asking()]
    expect([exclusiveRun.enter(first), exclusiveRun.enter(second)]).toEqual([true, false])
    exclusiveRun.leave(first)
    expect(second.woken).toBe(1)
    expect([exclusiveRun.enter(second), exclusiveRun.enter(first)]).toEqual([true, false])
  })

  it('goes on when somebody wants to be alone no more', () => {
    const { exclusiveRun } = quiet()
    const [running, fickle, other] = [asking(), asking(), asking()]
    exclusiveRun.begin(running)
    expect([exclusiveRun.enter(fickle), exclusiveRun.begin(other)]).toEqual([false, false])
    exclusiveRun.leave(fickle)
    expect([other.woken, exclusiveRun.begin(other)]).toEqual([1, true])
    exclusiveRun.leave(other)
    expect(exclusiveRun.begin(asking())).toBe(true)
  })

  it('lets in those that want to be alone in the order in which they came', () => {
    const { exclusiveRun } = quiet()
    const [first, second, third] = [asking(), asking(), asking()]
    exclusiveRun.enter(first)
    expect([exclusiveRun.enter(second), exclusiveRun.enter(third)]).toEqual([false, false])
    exclusiveRun.leave(first)
    // It had its turn. However soon it asks again, the others are before it.
    expect([exclusiveRun.enter(first), exclusiveRun.enter(third), exclusiveRun.enter(second)]).toEqual([
      false,
      false,
      true,
    ])
    exclusiveRun.leave(second)
    expect([exclusiveRun.enter(second), exclusiveRun.enter(first), exclusiveRun.enter(third)]).toEqual([
      false,
      false,
      true,
    ])
    exclusiveRun.leave(third)
    expect([exclusiveRun.enter(second), exclusiveRun.enter(first)]).toEqual([false, true])
  })

  it('lets those begin that came before the next who wants to be alone, though two of these take turns', () => {
    const { exclusiveRun } = quiet()
    const [first, second, beside, alsoBeside] = [asking(), asking(), asking(), asking()]
    exclusiveRun.enter(first)
    expect([exclusiveRun.begin(beside), exclusiveRun.enter(second), exclusiveRun.begin(alsoBeside)]).toEqual([
      false,
      false,
      false,
    ])
    exclusiveRun.leave(first)
    expect([beside.woken, second.woken, alsoBeside.woken]).toEqual([1, 0, 0])
    expect([exclusiveRun.enter(first), exclusiveRun.enter(second)]).toEqual([false, false])
    expect([exclusiveRun.begin(alsoBeside), exclusiveRun.begin(beside), exclusiveRun.begin(beside)]).toEqual([
      false,
      true,
      true,
    ])
    exclusiveRun.leave(beside)
    // It had its turn as well.
    expect(exclusiveRun.begin(beside)).toBe(false)
    exclusiveRun.end()
    expect(second.woken).toBe(0)
    exclusiveRun.end()
    expect([second.woken, exclusiveRun.enter(second)]).toEqual([1, true])
    exclusiveRun.leave(second)
    expect([exclusiveRun.enter(first), exclusiveRun.begin(alsoBeside)]).toEqual([false, true])
  })

  it('wakes whoever is next when somebody gives its place up', () => {
    const { exclusiveRun } = quiet()
    const [holder, beside, alone, last] = [asking(), asking(), asking(), asking()]
    exclusiveRun.enter(holder)
    expect([exclusiveRun.begin(beside), exclusiveRun.enter(alone), exclusiveRun.begin(last)]).toEqual([
      false,
      false,
      false,
    ])
    exclusiveRun.leave(holder)
    exclusiveRun.leave(beside)
    expect([alone.woken, last.woken]).toEqual([1, 0])
    exclusiveRun.leave(alone)
    expect([last.woken, exclusiveRun.begin(last)]).toEqual([1, true])
  })

  it('keeps the place of who changes its mind about what it waits for', () => {
    const { exclusiveRun } = quiet()
    const [holder, fickle, last] = [asking(), asking(), asking()]
    exclusiveRun.enter(holder)
    expect([exclusiveRun.enter(fickle), exclusiveRun.enter(last), exclusiveRun.begin(fickle)]).toEqual([
      false,
      false,
      false,
    ])
    exclusiveRun.leave(holder)
    expect([exclusiveRun.enter(last), exclusiveRun.begin(fickle)]).toEqual([false, true])
  })

  it('takes who begins beside others for alone no more', () => {
    const { exclusiveRun } = quiet()
    const [holder, alone] = [asking(), asking()]
    exclusiveRun.enter(holder)
    expect(exclusiveRun.begin(holder)).toBe(true)
    exclusiveRun.end()
    exclusiveRun.enter(holder)
    expect([exclusiveRun.enter(alone), exclusiveRun.begin(holder), alone.woken]).toEqual([false, false, 1])
    expect(exclusiveRun.enter(alone)).toBe(true)
  })

  it('wakes all that run beside each other, and lets them begin in any order, and others with them', () => {
    const { exclusiveRun } = quiet()
    const [holder, first, second, stranger] = [asking(), asking(), asking(), asking()]
    exclusiveRun.enter(holder)
    expect([exclusiveRun.begin(first), exclusiveRun.begin(second)]).toEqual([false, false])
    exclusiveRun.leave(holder)
    expect([first.woken, second.woken]).toEqual([1, 1])
    expect([stranger, second, first].map((one) => exclusiveRun.begin(one))).toEqual([true, true, true])
  })

  it('is not ended by one that waits and gives up, and nobody is woken by that', () => {
    const { exclusiveRun } = quiet()
    const [holder, fickle, beside] = [asking(), asking(), asking()]
    exclusiveRun.enter(holder)
    expect([exclusiveRun.enter(fickle), exclusiveRun.begin(beside)]).toEqual([false, false])
    exclusiveRun.leave(fickle)
    expect([beside.woken, exclusiveRun.begin(beside), exclusiveRun.enter(holder)]).toEqual([0, false, true])
  })

  it('has time for the next, if it was quick', () => {
    const { exclusiveRun, time } = quiet()
    const [holder, other] = [asking(), asking()]
    expect(exclusiveRun.hasTime(holder)).toBe(false)
    exclusiveRun.enter(holder)
    time.ms = 249
    expect([exclusiveRun.hasTime(holder), exclusiveRun.hasTime(other)]).toEqual([true, false])
    exclusiveRun.enter(holder)
    time.ms = 250
    expect(exclusiveRun.hasTime(holder)).toBe(false)
    exclusiveRun.leave(holder)
    exclusiveRun.enter(holder)
    expect(exclusiveRun.hasTime(holder)).toBe(true)
  })

  it('is kept for one that goes for its next, with what is left of its time', () => {
    const { exclusiveRun, time } = quiet()
    const [holder, alone, beside] = [asking(), asking(), asking()]
    exclusiveRun.enter(holder)
    time.ms = 100
    exclusiveRun.stepOut(holder)
    expect([exclusiveRun.enter(alone), exclusiveRun.begin(beside), alone.woken, beside.woken]).toEqual([
      false,
      false,
      0,
      0,
    ])
    time.ms = 200
    expect(exclusiveRun.enter(holder)).toBe(true)
    // It is in, and does not lose its place any more.
    time.ms = 6_000
    expect([exclusiveRun.enter(alone), exclusiveRun.begin(beside), exclusiveRun.hasTime(holder)]).toEqual([
      false,
      false,
      false,
    ])
    exclusiveRun.stepOut(holder)
    expect([alone.woken, exclusiveRun.enter(holder), exclusiveRun.enter(alone)]).toEqual([0, false, false])
    // For as long as it was alone, from when it first came.
    time.ms = 11_999
    expect(exclusiveRun.enter(alone)).toBe(false)
    exclusiveRun.leave(beside)
    time.ms = 12_000
    expect(exclusiveRun.enter(alone)).toBe(true)
  })

  it.for(['alone', 'beside'] as const)('does not wait without end for one that went for its next: %s', (how) => {
    const { exclusiveRun, time } = quiet()
    const [holder, next] = [asking(), asking()]
    const ask = () => (how === 'alone' ? exclusiveRun.enter(next) : exclusiveRun.begin(next))
    exclusiveRun.enter(holder)
    time.ms = 200
    exclusiveRun.stepOut(holder)
    time.ms = 5_200
    expect(ask()).toBe(false)
    time.ms = 5_201
    expect([ask(), exclusiveRun.enter(holder)]).toEqual([true, false])
  })

  it('calls the others when somebody asks and finds that it does not come back', () => {
    const { exclusiveRun, time } = quiet()
    const [holder, waiting, late] = [asking(), asking(), asking()]
    exclusiveRun.enter(holder)
    exclusiveRun.begin(waiting)
    exclusiveRun.stepOut(holder)
    time.ms = 5_001
    exclusiveRun.begin(late)
    expect(waiting.woken).toBe(1)
  })

  it('lets one in that comes back late, if nobody has asked meanwhile', () => {
    const { exclusiveRun, time } = quiet()
    const [holder, next] = [asking(), asking()]
    exclusiveRun.enter(holder)
    exclusiveRun.stepOut(holder)
    time.ms = 60_000
    expect([exclusiveRun.enter(holder), exclusiveRun.enter(next)]).toEqual([true, false])
  })

  it('is left by one that goes for its next and had its time, or was not alone', () => {
    const { exclusiveRun, time } = quiet()
    const [holder, waiting, next] = [asking(), asking(), asking()]
    exclusiveRun.enter(holder)
    expect([exclusiveRun.enter(waiting), exclusiveRun.enter(next)]).toEqual([false, false])
    exclusiveRun.stepOut(waiting)
    time.ms = 250
    exclusiveRun.stepOut(holder)
    expect([waiting.woken, next.woken, exclusiveRun.enter(next)]).toEqual([0, 1, true])
  })

  it('is left by one that goes for its next, and then begins beside others', () => {
    const { exclusiveRun } = quiet()
    const [holder, other] = [asking(), asking()]
    exclusiveRun.enter(holder)
    exclusiveRun.stepOut(holder)
    expect([exclusiveRun.begin(holder), exclusiveRun.begin(other)]).toEqual([true, true])
  })

  it('does not wait for one that was called and does not come', () => {
    const { exclusiveRun, time } = quiet()
    const [holder, away, next, last] = [asking(), asking(), asking(), asking()]
    exclusiveRun.enter(holder)
    expect([exclusiveRun.begin(away), exclusiveRun.enter(next), exclusiveRun.begin(last)]).toEqual([
      false,
      false,
      false,
    ])
    // It is not called yet.
    time.ms = 60_000
    exclusiveRun.leave(holder)
    expect([away.woken, next.woken, exclusiveRun.enter(next)]).toEqual([1, 0, false])
    time.ms = 119_999
    expect(exclusiveRun.enter(next)).toBe(false)
    time.ms = 120_000
    expect([exclusiveRun.begin(last), next.woken]).toEqual([false, 1])
    expect([exclusiveRun.enter(next), exclusiveRun.begin(away)]).toEqual([true, false])
    exclusiveRun.leave(next)
    expect([away.woken, last.woken]).toEqual([2, 2])
  })

  it('waits for one that was called for a while', () => {
    const { exclusiveRun, time } = quiet()
    const [holder, away, next] = [asking(), asking(), asking()]
    exclusiveRun.enter(holder)
    expect([exclusiveRun.begin(away), exclusiveRun.enter(next)]).toEqual([false, false])
    exclusiveRun.leave(holder)
    time.ms = 5_000
    expect(exclusiveRun.enter(next)).toBe(false)
    time.ms = 5_001
    expect(exclusiveRun.enter(next)).toBe(true)
  })

  it('is nobody’s for as long as it was somebody’s, where others waited to run', () => {
    const { exclusiveRun, time } = quiet()
    const [holder, next, beside] = [asking(), asking(), asking()]
    time.ms = 1_000
    exclusiveRun.enter(holder)
    expect([exclusiveRun.enter(next), exclusiveRun.begin(beside)]).toEqual([false, false])
    time.ms = 3_000
    exclusiveRun.leave(holder)
    expect([next.woken, beside.woken]).toEqual([0, 1])
    for (time.ms of [3_000, 4_999]) {
      expect([exclusiveRun.begin(beside), exclusiveRun.enter(next)]).toEqual([true, false])
      exclusiveRun.end()
    }
    time.ms = 5_000
    expect([exclusiveRun.begin(beside), exclusiveRun.enter(next), exclusiveRun.enter(holder)]).toEqual([
      false,
      true,
      false,
    ])
    exclusiveRun.leave(beside)
    // Nobody else waits to run.
    time.ms = 9_000
    exclusiveRun.leave(next)
    expect(exclusiveRun.enter(holder)).toBe(true)
  })

  it('lets in one that comes late, if nobody has asked meanwhile', () => {
    const { exclusiveRun, time } = quiet()
    const [holder, late, next] = [asking(), asking(), asking()]
    exclusiveRun.enter(holder)
    expect([exclusiveRun.enter(late), exclusiveRun.enter(next)]).toEqual([false, false])
    exclusiveRun.leave(holder)
    time.ms = 60_000
    expect([exclusiveRun.enter(late), exclusiveRun.enter(next)]).toEqual([true, false])
  })

  it('calls each once for its turn, however many end meanwhile', () => {
    const { exclusiveRun } = quiet()
    const [running, first, second] = [asking(), asking(), asking()]
    exclusiveRun.enter(running)
    expect([exclusiveRun.begin(first), exclusiveRun.begin(second)]).toEqual([false, false])
    exclusiveRun.leave(running)
    expect([exclusiveRun.begin(running), exclusiveRun.begin(running)]).toEqual([true, true])
    exclusiveRun.end()
    exclusiveRun.end()
    expect([first.woken, second.woken]).toEqual([1, 1])
  })
})

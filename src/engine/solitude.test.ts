import { describe, expect, it } from 'vitest'
import { Solitude } from './solitude.ts'

function asking() {
  const calls = { woken: 0, wake: () => void calls.woken++ }
  return calls
}

describe('solitude', () => {
  it('lets any number run beside each other', () => {
    const solitude = new Solitude()
    expect([asking(), asking(), asking()].map((one) => solitude.begin(one))).toEqual([true, true, true])
  })

  it('lets nobody begin while somebody wants to be alone, and wakes it when the last has ended', () => {
    const solitude = new Solitude()
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
    const solitude = new Solitude()
    const [first, second] = [asking(), asking()]
    expect([solitude.enter(first), solitude.enter(second)]).toEqual([true, false])
    solitude.leave(first)
    expect(second.woken).toBe(1)
    expect([solitude.enter(second), solitude.enter(first)]).toEqual([true, false])
  })

  it('goes on when somebody wants to be alone no more', () => {
    const solitude = new Solitude()
    const [running, fickle, other] = [asking(), asking(), asking()]
    solitude.begin(running)
    expect([solitude.enter(fickle), solitude.begin(other)]).toEqual([false, false])
    solitude.leave(fickle)
    expect([other.woken, solitude.begin(other)]).toEqual([1, true])
    solitude.leave(other)
    expect(solitude.begin(asking())).toBe(true)
  })
})

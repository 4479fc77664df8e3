import { describe, expect, it } from 'vitest'
import { reached } from '../../src/testing/kit/world.ts'
import { Mortality } from '../../src/testing/mortal.ts'
import { Post } from './shop.ts'

function reach<D>(dependencies: D) {
  const mortality = new Mortality()
  const calls: string[] = []
  const late = () => undefined
  return { mortality, calls, reached: reached(dependencies, { mortality, called: (name) => calls.push(name), late }) }
}

describe('what a handler calls', () => {
  it('is called as it is, and each call is counted by its name', async () => {
    const log: string[] = []
    const plain = Object.freeze({ post: new Post(), note: (text: string) => log.push(text), limit: 3 })
    const { reached: near, calls } = reach(plain)
    const { note, limit } = near
    expect([note('one'), limit]).toEqual([1, 3])
    await near.post.send({ to: 'anna', amount: 1 })
    expect(plain.post.sent).toEqual([{ to: 'anna', amount: 1 }])
    expect(near.post).toBeInstanceOf(Post)
    expect({ ...near }).toHaveProperty('limit', 3)
    expect('note' in near).toBe(true)
    expect(calls).toEqual(['note', 'post.send'])
  })

  it('may be a function, and may fail', async () => {
    const { reached: near, calls } = reach(async function send(text: string) {
      if (text === '') throw new RangeError('nothing to send')
      return text.length
    })
    expect(await near('one')).toBe(3)
    await expect(near('')).rejects.toThrow('nothing to send')
    expect(calls).toEqual(['send', 'send'])
  })

  it('does nothing any more for whoever is dead', () => {
    const log: string[] = []
    const { reached: near, mortality } = reach({ note: (text: string) => log.push(text) })
    near.note('one')
    mortality.die()
    expect(() => near.note('two')).toThrow("The process is dead: note can't be called.")
    expect(log).toEqual(['one'])
  })

  it('has had its effect when the process dies over it, which hears nothing of that', async () => {
    const log: string[] = []
    const mortality = new Mortality()
    const dependencies = { note: async (text: string) => log.push(text) }
    const near = reached(dependencies, { mortality, called: () => mortality.die(), late: () => undefined })
    const answer = near.note('one')
    const first = await Promise.race([answer, new Promise((resolve) => setImmediate(resolve, 'silence'))])
    expect([first, log]).toEqual(['silence', ['one']])
  })
})

import { createVirtualRuntime } from 'holdfast/testing'
import { expect, it } from 'vitest'
import type { Attempt } from './attempt.ts'
import { Deadlines } from './deadlines.ts'

function watched(timeoutMs = 100) {
  const runtime = createVirtualRuntime()
  const deadlines = new Deadlines(timeoutMs, runtime)
  const givenUp: [string, number, unknown][] = []
  const attempt = (name: string) =>
    ({ giveUp: (reason: unknown) => givenUp.push([name, runtime.clock.mono(), reason]) }) as unknown as Attempt
  const begin = (name: string) => {
    const one = attempt(name)
    deadlines.add(one)
    return one
  }
  return { runtime, deadlines, begin, givenUp, names: () => givenUp.map(([name, at]) => `${name} ${at}`) }
}

it('gives up each when its time is up, and not before', async () => {
  const { runtime, begin, givenUp, names } = watched()
  begin('a')
  await runtime.advance(30)
  begin('b')
  await runtime.advance(69)
  expect(names()).toEqual([])
  await runtime.advance(1)
  expect(names()).toEqual(['a 100'])
  await runtime.advance(100)
  expect(names()).toEqual(['a 100', 'b 130'])
  expect(givenUp[0]?.[2]).toMatchObject({ name: 'TimeoutError' })
})

it('leaves alone what has ended, and watches again when there is something', async () => {
  const { runtime, deadlines, begin, names } = watched()
  deadlines.delete(begin('a'))
  await runtime.advance(150)
  begin('b')
  await runtime.advance(99)
  expect(names()).toEqual([])
  await runtime.advance(1)
  expect(names()).toEqual(['b 250'])
})

it('gives up nothing when it is closed', async () => {
  const { runtime, deadlines, begin, names } = watched()
  begin('a')
  deadlines.close()
  await runtime.advance(1_000)
  expect(names()).toEqual([])
})

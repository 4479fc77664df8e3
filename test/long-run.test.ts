import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { LongRun } from './long-run.ts'

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return join(folder, 'record.json')
}

it('goes on from the last that was kept', () => {
  const file = newFile()
  let nowMs = 100
  const begin = () => new LongRun(file, { cycles: 9 }, { done: 0 }, () => nowMs)
  const run = begin()
  expect(run.progress).toEqual({ done: 0 })
  nowMs += 2_500
  run.keep({ done: 4 })
  nowMs += 60_000
  const next = begin()
  nowMs += 1_000
  expect(next.progress).toEqual({ done: 4 })
  expect(next.seconds).toBe(3.5)
  expect(next.revisions).toHaveLength(1)
})

it('begins anew without a file', () => {
  const run = new LongRun(undefined, {}, 0)
  run.keep(5)
  expect(run.progress).toBe(5)
  expect(new LongRun(undefined, {}, 0).progress).toBe(0)
})

it('does not go on with what was something else', () => {
  const file = newFile()
  new LongRun(file, { cycles: 9 }, 0).keep(4)
  expect(() => new LongRun(file, { cycles: 10 }, 0)).toThrow(/other settings: {"cycles":9}/)
})

it('does not share its file with another run', () => {
  const file = newFile()
  const [first, second] = [new LongRun(file, {}, 0), new LongRun(file, {}, 0)]
  first.keep(1)
  expect(() => second.keep(1)).toThrow(/two runs/)
  first.keep(2)
  expect(new LongRun(file, {}, 0).progress).toBe(2)
})

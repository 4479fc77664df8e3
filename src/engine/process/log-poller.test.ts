import { createVirtualRuntime } from 'holdfast/testing'
import { expect, it } from 'vitest'
import type { LogStore } from '../../log/log-store.ts'
import { LogPoller } from './log-poller.ts'
import type { Runner } from './runner.ts'

/** One runner that reads the log, one that reads something else, and a log whose end is asked for. */
function looking() {
  const runtime = createVirtualRuntime()
  const heads: (number | Error)[] = []
  const asked: number[] = []
  const woken: [string, number][] = []
  const head = async () => {
    asked.push(runtime.clock.mono())
    const next = heads.shift() ?? 0
    if (next instanceof Error) throw next
    return next
  }
  const runner = (name: string, source?: object) =>
    ({ subscription: { source }, wakeBelow: (position: number) => woken.push([name, position]) }) as unknown as Runner
  const create = (...runners: Runner[]) => new LogPoller({ head } as LogStore, runners, runtime.timers, 500)
  return { runtime, heads, asked, woken, runner, create }
}

it('tells those that read the log where it ends, at intervals, once for all of them', async () => {
  const { runtime, heads, asked, woken, runner, create } = looking()
  heads.push(7, new Error('away'), 9)
  const lookout = create(runner('a'), runner('elsewhere', {}), runner('b'))
  const running = lookout.run()
  await runtime.advance(1_700)
  expect(asked).toEqual([500, 1_000, 1_500])
  // Whom the log does not answer, their own question may; they are to find out.
  const ends = [7, Number.POSITIVE_INFINITY, 9]
  expect(woken).toEqual(ends.flatMap((end) => ['a', 'b'].map((name) => [name, end])))
  lookout.stop()
  await running
  await runtime.advance(5_000)
  expect(asked).toHaveLength(3)
})

it('does not look where nobody reads the log', async () => {
  const { runtime, asked, runner, create } = looking()
  await create(runner('elsewhere', {})).run()
  await runtime.advance(5_000)
  expect(asked).toEqual([])
})

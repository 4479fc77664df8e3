// A process with nothing to do: an engine with default settings on an empty log.
import { createEngine, defineEvents, defineHandler, defineProjection } from 'holdfast'
import { createPostgresStore } from 'holdfast/postgres'
import { z } from 'zod'
import type { Answer, Question, Task } from './task.ts'

const { url, subscriptions, act } = JSON.parse(process.argv[2] ?? '') as Task
const events = defineEvents({ Counted: z.object({ by: z.int() }) })
const store = await createPostgresStore({ connection: url })
const nothing = () => undefined
const engine = createEngine({
  // Fifty processes on a small machine complain now and then; the figures tell.
  logger: { info: nothing, warn: nothing, error: nothing },
  store,
  subscriptions: Array.from({ length: subscriptions }, (_, index) => consumer(index)),
})

if (act === 'prepare') {
  await engine.prepare()
  await store.close()
} else {
  let claims = 0
  engine.on('partition.claimed', () => void claims++)
  process.on('message', (question: Question) => {
    if (question === 'stop') void stop()
    else {
      const { user, system } = process.cpuUsage()
      tell({ kind: 'sample', cpuMicros: user + system, rssBytes: process.memoryUsage.rss(), claims })
    }
  })
  // The parent may die without a word.
  process.on('disconnect', () => process.exit(1))
  await engine.start()
  tell({ kind: 'started' })
}

/** Two projections, then a handler, and so on. */
function consumer(index: number) {
  const name = `consumer-${index}`
  if (index % 3 === 2) return defineHandler(name, { events, on: { Counted: () => undefined } })
  return defineProjection(name, {
    events,
    initial: () => ({ total: 0 }),
    on: { Counted: (row, { data }) => ({ total: row.total + data.by }) },
  })
}

async function stop(): Promise<void> {
  process.removeAllListeners('disconnect')
  await engine.stop()
  await store.close()
  process.disconnect()
}

function tell(answer: Answer): void {
  if (process.connected) process.send?.(answer)
}

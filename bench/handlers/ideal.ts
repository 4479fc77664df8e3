import { answer } from '../child.ts'
import { io } from './notify.ts'

export interface IdealTask {
  readonly events: number
  readonly concurrency: number
}

/** So many loops side by side, each of which waits for one call after the other: nothing is read, decided or written. */
async function ideal({ events, concurrency }: IdealTask): Promise<number> {
  let left = events
  const loop = async () => {
    while (left-- > 0) await io()
  }
  const begun = performance.now()
  await Promise.all(Array.from({ length: concurrency }, loop))
  return performance.now() - begun
}

if (import.meta.main) await answer(ideal)

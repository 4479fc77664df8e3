import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { CrashPoint } from '../../src/testing/simulation/network.ts'
import { baselineOf, checkBaseline, type Course, type Failed, pointsOf, tryPoints } from './sweep.ts'

export type Job =
  | { readonly kind: 'baseline'; readonly course: Course }
  /** Each of them by itself. */
  | { readonly kind: 'points'; readonly course: Course; readonly points: readonly CrashPoint[] }
  /** One, and every one that comes after it in the run that it makes. */
  | { readonly kind: 'pairs'; readonly course: Course; readonly first: CrashPoint }

export interface Done {
  readonly runs: number
  /** Of the first run. */
  readonly calls: number
  readonly failed: readonly Failed[]
}

/** As many processes as there are cores, that do what there is to do. */
export class Crew {
  readonly #members: readonly ChildProcess[]

  constructor(size: number) {
    this.#members = Array.from({ length: size }, () =>
      fork(fileURLToPath(import.meta.url), { execArgv: process.execArgv }),
    )
  }

  /** What came of each, in the order of the jobs. */
  async all(jobs: readonly Job[]): Promise<Done[]> {
    const done: Done[] = []
    let next = 0
    await Promise.all(
      this.#members.map(async (member) => {
        while (next < jobs.length) {
          const own = next++
          done[own] = await ask(member, jobs[own] as Job)
          for (const failed of done[own].failed)
            console.error(
              `${failed.store}, ${failed.scenario}, ${failed.points}: ${failed.violations.slice(0, 3).join('\n  ')}`,
            )
        }
      }),
    )
    return done
  }

  dismiss(): void {
    for (const member of this.#members) member.kill()
  }
}

function ask(member: ChildProcess, job: Job): Promise<Done> {
  return new Promise((resolve, reject) => {
    const isGone = (code: number | null) =>
      reject(new Error(`A process ended with ${code} over ${JSON.stringify(job)}.`))
    member.once('exit', isGone)
    member.once('message', (done) => {
      member.off('exit', isGone)
      resolve(done as Done)
    })
    member.send(job)
  })
}

async function work(job: Job): Promise<Done> {
  const { course } = job
  if (job.kind === 'baseline') {
    const failed = await checkBaseline(course)
    return { runs: 1, calls: (await baselineOf(course)).calls, failed: failed ? [failed] : [] }
  }
  if (job.kind === 'points')
    return tryAll(
      course,
      job.points.map((point) => [point]),
    )
  const { calls } = await tryPoints(course, [job.first])
  return tryAll(
    course,
    pointsOf(calls, job.first.call + 1).map((second) => [job.first, second]),
  )
}

async function tryAll(course: Course, all: readonly (readonly CrashPoint[])[]): Promise<Done> {
  const failed: Failed[] = []
  for (const points of all) {
    const outcome = await tryPoints(course, points)
    if (outcome.failed) failed.push(outcome.failed)
  }
  return { runs: all.length, calls: 0, failed }
}

// What is thrown ends the process, and whoever waits for it hears of that.
if (import.meta.main) process.on('message', (job: Job) => void answer(job))

async function answer(job: Job): Promise<void> {
  process.send?.(await work(job))
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { createSqliteStore } from 'holdfast/sqlite'
import { createRandom } from 'holdfast/testing'
import { type Comparison, compareWithOracle } from './compare.ts'
import { EngineProcess } from './engine-process.ts'
import { createWriter, type Writer } from './writer.ts'

export interface KillResult extends Comparison {
  readonly seed: number
  readonly kills: number
  /** Before it owned anything: while Node started, or while it opened, migrated or claimed. */
  readonly killsWhileStarting: number
  /** While it owned the subscription and there were events it had not done. */
  readonly killsWhileWorking: number
  /** Between the beginning and the end of a commit. */
  readonly killsInsideCommit: number
  /** After which the checkpoint was further than before. */
  readonly killsWithProgress: number
  readonly commits: number
  readonly repeatedEvents: number
  readonly seconds: number
}

// The writer stays so far ahead that there is always something to do, and never so far that the end takes long.
const leastBacklog = 1_000

/**
 * Kills an engine's process with -9 at random moments, again and again, while events are appended from here; then lets one
 * finish, and compares. The file stays for a look when something is wrong.
 */
export async function runKills(
  seed: number,
  kills: number,
  onKill: (kill: number) => void = () => undefined,
): Promise<KillResult> {
  const begun = performance.now()
  const random = createRandom(seed)
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-kill-'))
  const file = join(folder, 'killed.db')
  const tally = { starting: 0, working: 0, insideCommit: 0, withProgress: 0, commits: 0 }
  let started = 0
  const prepare = () =>
    new EngineProcess({ file, name: `engine-${++started}`, shuffleSeed: seed, pageEvents: 20 + random.below(60) })

  // While one process works, the next one loads its code.
  let next = prepare()
  try {
    // The first ones meet an empty folder: they die while the file is made.
    const firstKills = Math.ceil(kills / 20)
    for (let kill = 1; kill <= firstKills; kill++) {
      await killWhileStarting(random.below(40))
      onKill(kill)
    }
    await using store = await createSqliteStore({ file })
    const writer = createWriter(store, seed)
    // On a slow machine so few events are written that chance alone might make none that fails.
    await writer.append('below-zero', 100, -1_000_000_000, 100)
    const writing = keepWriting(writer, file)
    try {
      for (let kill = firstKills + 1; kill <= kills; kill++) {
        await writing.enoughBacklog()
        const before = positions(file)
        const dice = random.below(10)
        if (dice === 0) await killWhileLoading(random.below(80))
        else if (dice <= 2) await killWhileStarting(random.below(25))
        else await killWhileWorking(dice <= 6 ? 'claimed' : 'committed', random.below(60_000) / 1_000)
        const after = positions(file)
        if (after.total > before.total) tally.withProgress++
        if (after.problem) throw new Error(`After kill ${kill}: ${after.problem}`)
        onKill(kill)
      }
    } finally {
      await writing.stop()
    }
    next.send('go')
    next.send('drain')
    await next.until('drained', undefined, 0, 120_000)
    await next.stop()
    const comparison = await compareWithOracle(file, writer.written, seed)
    if (comparison.problems.length === 0) await rm(folder, { recursive: true })
    else comparison.problems.push(`The file is ${file}.`)
    return {
      seed,
      kills: started - 1,
      killsWhileStarting: tally.starting,
      killsWhileWorking: tally.working,
      killsInsideCommit: tally.insideCommit,
      killsWithProgress: tally.withProgress,
      commits: tally.commits,
      repeatedEvents: writer.repeated,
      seconds: Math.round(performance.now() - begun) / 1_000,
      ...comparison,
    }
  } finally {
    await next[Symbol.asyncDispose]()
  }

  async function killWhileLoading(afterMs: number): Promise<void> {
    // The one that is prepared is loaded already; this one begins from nothing.
    await using engine = prepare()
    engine.send('go')
    await setTimeout(afterMs)
    await bury(engine)
  }

  async function killWhileStarting(afterMs: number): Promise<void> {
    await using engine = next
    await engine.until('ready')
    next = prepare()
    engine.send('go')
    await setTimeout(afterMs)
    await bury(engine)
  }

  async function killWhileWorking(since: 'claimed' | 'committed', afterMs: number): Promise<void> {
    await using engine = next
    await engine.until('ready')
    next = prepare()
    engine.send('go')
    await engine.until(since, ({ subscription }) => subscription === 'ledger')
    await engine.until(since, ({ subscription }) => subscription === 'shuffled')
    await setTimeout(afterMs)
    await bury(engine)
  }

  async function bury(engine: EngineProcess): Promise<void> {
    await engine.kill()
    tally.commits += engine.commits
    if (engine.isCommitting) tally.insideCommit++
    if (engine.count('claimed') === 0) tally.starting++
    else if (positions(file).behind > 0) tally.working++
  }
}

/** Appends in the background, so that there is always a backlog, until it is told to stop. */
function keepWriting(writer: Writer, file: string) {
  let stopping = false
  let failed: unknown
  const run = (async () => {
    while (!stopping) {
      if (positions(file).behind < 3 * leastBacklog) await writer.appendSome()
      else await setTimeout(5)
    }
  })().catch((error: unknown) => {
    failed = error
  })
  return {
    enoughBacklog: async () => {
      while (!failed && positions(file).behind < leastBacklog) await setTimeout(2)
      if (failed) throw failed
    },
    stop: async () => {
      stopping = true
      await run
      if (failed) throw failed
    },
  }
}

/** Where the subscriptions are, and whether each of the events up to there has exactly one outcome. */
function positions(file: string): { total: number; behind: number; problem: string | undefined } {
  const db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 })
  try {
    const { head } = db.prepare('SELECT coalesce(max(position), 0) AS head FROM holdfast_events').get() as {
      head: number
    }
    const rows = db
      .prepare(
        `SELECT subscription, position, applied + duplicate + filtered + held + discarded AS outcomes
         FROM holdfast_partitions`,
      )
      .all() as { subscription: string; position: number; outcomes: number }[]
    const wrong = rows.find(({ position, outcomes }) => position !== outcomes)
    return {
      total: rows.reduce((sum, { position }) => sum + position, 0),
      // Before the first process got so far as to register them, they are behind by everything.
      behind: rows.length < 2 ? head : head - Math.min(...rows.map(({ position }) => position)),
      problem: wrong && `${wrong.subscription} is at ${wrong.position} with ${wrong.outcomes} outcomes.`,
    }
  } finally {
    db.close()
  }
}

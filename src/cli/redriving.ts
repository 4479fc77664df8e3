import type { Operator } from '../operator/operator.ts'
import type { RedriveProgressReport } from '../operator/progress.ts'
import type { Redrive } from '../redrive/redrive.ts'
import type { Result } from './command.ts'
import type { Context } from './context.ts'
import { CommandError } from './errors.ts'
import { failureJson, failureLine, withoutPayload } from './letters.ts'
import { bar } from './output/progress.ts'
import { bold, dim, green, red, yellow } from './output/style.ts'
import { count, laneName, many, span } from './output/words.ts'

const shownFailures = 20
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** Sees a redrive through: the owners of the lanes carry it out, or this process if no engine runs. */
export async function followRedrive(
  ctx: Context,
  operator: Operator,
  id: string,
  { busy = 0, mayWork = true }: { readonly busy?: number; readonly mayWork?: boolean } = {},
): Promise<Result> {
  const asked = ctx.graceful()
  ctx.out.talk(dim(`Following ${id}; ^C leaves it to the engines.`))
  const stuck = new AbortController()
  // What fails again is told at the end, as a list.
  const working = mayWork ? operator.ensureWorked(id, { signal: asked, logger: silent }) : undefined
  working?.catch(() => stuck.abort())
  let last: RedriveProgressReport | undefined
  for await (const report of operator.watch(id, { every: '200ms', signal: AbortSignal.any([asked, stuck.signal]) })) {
    last = report
    ctx.out.status(progressOf(report))
  }
  ctx.out.status('')
  if (asked.aborted && !last?.isOver) {
    throw new CommandError(
      'INTERRUPTED',
      `The redrive ${id} is not over. It is kept, and goes on with the next engine.`,
      `holdfast redrives show ${id} --watch, or: holdfast redrives cancel ${id}`,
      { more: { redrive: id } },
    )
  }
  const worked = await working
  const redrive = await operator.findRedrive(id)
  return redriveResult(operator, redrive, { busy, by: worked?.by })
}

function progressOf(report: RedriveProgressReport): string {
  const { redrive, lanesDone, lanes, lettersPerSecond, letters, etaSeconds } = report
  const { failed, deferred } = redrive.byState
  const parts = [
    `${redrive.act} ${bar(lanesDone, lanes)} lanes`,
    `${count(letters)} letters`,
    `${count(Math.round(lettersPerSecond))}/s`,
    ...(etaSeconds === undefined || report.isOver ? [] : [`ETA ${span(etaSeconds)}`]),
    ...(failed > 0 ? [`${count(failed)} failed`] : []),
    ...(deferred > 0 ? [`${count(deferred)} deferred`] : []),
  ]
  return parts.join('  ')
}

/** What came of it, with what failed. 3 when not all of it was processed. */
export async function redriveResult(
  operator: Operator,
  redrive: Redrive,
  more: { readonly busy?: number; readonly by?: 'engine' | 'here' | undefined } = {},
): Promise<Result> {
  const { id, status, byState, letters, lanes } = redrive
  const reports = byState.failed > 0 ? await operator.redriveLanes(id, { state: 'failed', limit: shownFailures }) : []
  const failures = reports.map(({ lane, position, heldAt, failure, head }) => ({
    lane,
    position,
    heldAt: heldAt ?? null,
    failure: failure === undefined ? null : failureJson(withoutPayload(failure, head)),
  }))
  const isGood = byState.failed === 0 && status !== 'stopped'
  return {
    json: { redrive, failures, ...more },
    show: (out) => {
      const paint = status === 'done' && isGood ? green : status === 'running' ? yellow : red
      out.data(
        bold(id),
        ' ',
        paint(status),
        `  ${redrive.act} of ${redrive.subscription}`,
        dim(` by ${redrive.by}: ${redrive.reason}`),
      )
      const parts = Object.entries(byState).filter(([, value]) => value > 0)
      out.data(
        `  ${many(lanes, 'lane')}: ${parts.map(([state, value]) => `${count(value)} ${state}`).join(', ')}; ${many(letters, 'letter')} processed`,
      )
      if (redrive.endedReason !== undefined) out.data('  ', redrive.endedReason)
      for (const { lane, heldAt, failure } of failures)
        out.data(
          '  ',
          red('failed'),
          ' ',
          laneName(lane),
          heldAt === null ? '' : ` at ${heldAt}`,
          failure ? [': ', failureLine(failure)] : '',
        )
      if (byState.failed > failures.length) out.data(`  … and ${count(byState.failed - failures.length)} more`)
      if (byState.failed > 0) out.talk(dim('Next: '), `holdfast dlq incidents ${redrive.subscription}`)
      if (byState.deferred > 0)
        out.talk(dim('Next: '), 'holdfast breakers list --open; to try them now: holdfast breakers reset <breaker>')
    },
    exit: isGood ? 0 : 3,
  }
}

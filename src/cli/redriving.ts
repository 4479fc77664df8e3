import type { Command } from 'commander'
import type { Operator } from '../operator/operator.ts'
import type { RedriveProgressReport } from '../operator/progress.ts'
import type { Redrive } from '../redrive/redrive.ts'
import { reasonFlag } from './act.ts'
import type { Result } from './command.ts'
import type { Context } from './context.ts'
import { CommandError, toTold } from './errors.ts'
import { failureJson, failureLine, withoutPayload, withRevisions } from './letters.ts'
import { bar } from './output/progress.ts'
import { bold, dim, green, red, yellow } from './output/style.ts'
import { withIsoTimes } from './output/times.ts'
import { count, laneName, many, span } from './output/words.ts'
import { waitingOf, WaitingTeller } from './waiting.ts'

const shownFailures = 20
/** About one look in a second. */
const reportsPerLook = 5
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

interface FollowOptions {
  readonly busy?: number
  readonly mayWork?: boolean
  /** Default: `engine.allowEffects` of the configuration. */
  readonly allowEffects?: boolean | undefined
}

/** The option of every command that may process letters in this process. */
export function withEffects(command: Command): Command {
  return command.option(
    '--allow-effects',
    'also process letters on a store with imported letters; handlers repeat their side effects',
  )
}

/** Follows a redrive to its end. Running engines carry it out; if none runs, this process does. */
export async function followRedrive(
  ctx: Context,
  operator: Operator,
  id: string,
  { busy = 0, mayWork = true, allowEffects }: FollowOptions = {},
): Promise<Result> {
  const { config } = await ctx.settings()
  const mayAct = allowEffects ?? config.engine?.allowEffects ?? false
  const asked = ctx.graceful()
  ctx.out.talk(dim(`Following ${id}. ^C leaves the rest to the engines.`))
  const stuck = new AbortController()
  // Failures are listed at the end.
  const working = mayWork
    ? operator.ensureWorked(id, { signal: asked, logger: silent, allowEffects: mayAct })
    : undefined
  working?.catch(() => stuck.abort())
  const waiting = new WaitingTeller(ctx)
  let last: RedriveProgressReport | undefined
  let reports = 0
  for await (const report of operator.watch(id, { every: '200ms', signal: AbortSignal.any([asked, stuck.signal]) })) {
    last = report
    ctx.out.status(progressOf(report))
    // If this process may work, it does so, or reports the reason at the end.
    if (!mayWork && reports++ % reportsPerLook === 0) await waiting.look(report.redrive)
  }
  ctx.out.status('')
  if (asked.aborted && !last?.isOver) {
    throw new CommandError(
      'INTERRUPTED',
      `The redrive ${id} is not finished. It is stored, and the next running engine continues it.`,
      `holdfast redrives show ${id} --watch, or: holdfast redrives cancel ${id} ${reasonFlag}`,
      { more: { redrive: id } },
    )
  }
  try {
    const worked = await working
    return await redriveResult(ctx, operator, await operator.findRedrive(id), { busy, by: worked?.by })
  } catch (error) {
    const { code, message } = toTold(error)
    if (code === 'STORE_IMPORTED')
      throw new CommandError(
        code,
        `${message} The redrive ${id} is stored and waits.`,
        `If repeated side effects do no harm here: holdfast redrives show ${id} --work --allow-effects`,
        { more: { redrive: id } },
      )
    if (code !== 'SUBSCRIPTION_PAUSED') throw error
    return pausedResult(ctx, await operator.findRedrive(id), message, busy)
  }
}

/** The redrive is accepted and runs after the subscription is resumed. */
async function pausedResult(ctx: Context, redrive: Redrive, message: string, busy: number): Promise<Result> {
  const { id, subscription } = redrive
  const { partitions } = await ctx.storedSubscription(subscription)
  return {
    json: { redrive: withIsoTimes(redrive), failures: [], busy, paused: withIsoTimes(partitions[0]?.pause ?? null) },
    show: (out) => {
      out.data(message)
      out.next(`holdfast subscriptions resume ${subscription} ${reasonFlag}`)
      out.talk(dim('Or: '), out.hint(`holdfast redrives cancel ${id} ${reasonFlag}`))
    },
  }
}

/** The act as written on the command line. */
export function actName({ act, isWhole }: Pick<Redrive, 'act' | 'isWhole'>): string {
  return isWhole ? `${act} --whole` : act
}

function progressOf(report: RedriveProgressReport): string {
  const { redrive, lanesDone, lanes, lettersPerSecond, letters, etaSeconds } = report
  const { failed, deferred } = redrive.byState
  const parts = [
    `${actName(redrive)} ${bar(lanesDone, lanes)} ${lanes === 1 ? 'lane' : 'lanes'}`,
    many(letters, 'letter'),
    `${count(Math.round(lettersPerSecond))}/s`,
    ...(etaSeconds === undefined || report.isOver ? [] : [`ETA ${span(etaSeconds)}`]),
    ...(failed > 0 ? [`${count(failed)} failed`] : []),
    ...(deferred > 0 ? [`${count(deferred)} deferred`] : []),
  ]
  return parts.join('  ')
}

/** The result of a redrive with its failures. Exit code 3 if some lanes failed or the redrive stopped. */
export async function redriveResult(
  ctx: Context,
  operator: Operator,
  redrive: Redrive,
  more: { readonly busy?: number; readonly by?: 'engine' | 'here' | undefined } = {},
): Promise<Result> {
  const { id, status, byState, letters, lanes } = redrive
  const reports = byState.failed > 0 ? await operator.redriveLanes(id, { state: 'failed', limit: shownFailures }) : []
  const { letters: stored } = await ctx.store()
  const failures = await Promise.all(
    reports.map(async ({ lane, position, headPosition, failure, head }) => ({
      lane,
      position,
      headPosition: headPosition ?? null,
      failure: failure && head ? failureJson(withoutPayload(failure, await withRevisions(stored, head))) : null,
    })),
  )
  const isGood = byState.failed === 0 && status !== 'stopped'
  const waiting = await waitingOf(ctx, redrive)
  return {
    json: { redrive: withIsoTimes(redrive), failures, ...more },
    show: (out) => {
      const paint = status === 'done' && isGood ? green : status === 'running' ? yellow : red
      out.data(
        bold(id),
        ' ',
        paint(status),
        `  ${actName(redrive)} of ${redrive.subscription}`,
        dim(` by ${redrive.by}: ${redrive.reason}`),
      )
      const parts = Object.entries(byState).filter(([, value]) => value > 0)
      out.data(
        `  ${many(lanes, 'lane')}: ${parts.map(([state, value]) => `${count(value)} ${state}`).join(', ')}; ${many(letters, 'letter')} processed`,
      )
      if (redrive.endedReason !== undefined) out.data('  ', redrive.endedReason)
      for (const { lane, headPosition, failure } of failures)
        out.data(
          '  ',
          red('failed'),
          ' ',
          laneName(lane),
          headPosition === null ? '' : ` at ${headPosition}`,
          failure ? [': ', failureLine(failure)] : '',
        )
      if (byState.failed > failures.length) out.data(`  … and ${count(byState.failed - failures.length)} more`)
      if (byState.failed > 0) out.next(`holdfast dlq incidents ${redrive.subscription}`)
      if (byState.deferred > 0) {
        out.talk('A deferred lane continues when its breaker closes. To try it now, reset the breaker.')
        out.next('holdfast breakers list --open')
      }
      if (waiting) {
        out.talk(waiting.what)
        out.next(waiting.next)
      }
    },
    exit: isGood ? 0 : 3,
  }
}

import type { Command } from 'commander'
import { payloadOf } from '../../dead-letter/payload.ts'
import { redact } from '../../dead-letter/redact.ts'
import type { Difference, Verification } from '../../verify/verify.ts'
import type { Store } from '../../store.ts'
import { reasonFlag } from '../act.ts'
import { action, type Perform, shareNumber, withReason } from '../command.ts'
import { changeLine, type ShownChange, shownChange } from '../output/changes.ts'
import type { Output } from '../output/output.ts'
import { Progress } from '../output/progress.ts'
import { bold, dim, green, red, type Text } from '../output/style.ts'
import { count, laneName, many } from '../output/words.ts'
import { isOfOtherCode, liveVersions } from '../report.ts'
import { prepareReveal, type RevealFlags, revealHint } from '../reveal.ts'

export function addVerify(program: Command, perform: Perform): void {
  const command = program
    .command('verify')
    .argument('[subscription]', 'default: all')
    .description('replay the log and compare every outcome and row with the store; safe while engines run')
    .option('--load <share>', 'the fraction of time spent working, above 0 and at most 1; default: 0.5', shareNumber)
    .option('--reveal', 'show the values that differ; recorded in the audit')
  action<RevealFlags & { readonly load?: number }>(withReason(command), perform, async (ctx, [name], flags) => {
    const chosen = name === undefined ? await ctx.declared() : [await ctx.subscription(name)]
    const stored = name === undefined ? await ctx.stored() : new Map([[name, await ctx.storedSubscription(name)]])
    const versions = await liveVersions(ctx, chosen, stored)
    const reveal = await prepareReveal(ctx, flags)
    const engine = await ctx.engine()
    const results: Verification[] = []
    const skipped: { subscription: string; why: string }[] = []
    for (const subscription of chosen) {
      ctx.signal.throwIfAborted()
      // An error if it was named; skipped when all are verified.
      const isOther = isOfOtherCode(subscription.consumer, versions)
      if (isOther && name === undefined)
        skipped.push({ subscription: subscription.name, why: 'its live version differs from the declared one' })
      else if (!stored.has(subscription.name))
        skipped.push({ subscription: subscription.name, why: 'it was never started' })
      else if (name === undefined && subscription.source)
        skipped.push({
          subscription: subscription.name,
          why: `its source ${subscription.source.name} can't be read again`,
        })
      else {
        const progress = new Progress(ctx.out, `verifying ${subscription.name}`)
        const { load = 0.5 } = flags
        const onProgress = ({ events, of }: { events: number; of: number }) => progress.at(events, of)
        results.push(await engine.verify(subscription.name, { load, signal: ctx.signal, onProgress }))
        progress.end()
      }
    }
    await reveal(name ?? 'all subscriptions')
    const store = await ctx.store()
    const verified: Shown[] = []
    for (const each of results) {
      const differences = each.differences.map((one) => shown(store, each.subscription, one, flags.reveal === true))
      verified.push({ ...each, differences: await Promise.all(differences) })
    }
    const changed = results.filter(isOfAnotherFold).map(({ subscription }) => subscription)
    const differs = results.some(({ ok }) => !ok)
    // Nothing verified is not a success: a script that asks would take it for one.
    const isOk = results.length > 0 && !differs
    return {
      json: { verified: isOk, subscriptions: verified, skipped },
      show: (out) => {
        for (const each of verified) show(out, each)
        for (const { subscription, why } of skipped) out.data(dim('skipped'), ` ${subscription}: ${why}.`)
        if (results.length === 0) out.talk(red('Nothing was verified.'))
        if (differs)
          out.talk(red('The store differs from a replay of the log.'), ' Back up the store before you change anything.')
        for (const each of changed) {
          out.talk(`If you changed the fold of ${each}, give it a new version in defineProjection and rebuild it:`)
          out.next(`holdfast projections rebuild ${each} ${reasonFlag}`)
        }
        if (differs && !flags.reveal)
          out.talk(revealHint(out, `holdfast verify${name === undefined ? '' : ` ${name}`}`))
      },
      exit: isOk ? 0 : 3,
    }
  })
}

/** Rows differ from a replay. A changed fold is the most frequent cause; it can also refuse events that were applied. */
function isOfAnotherFold({ differences }: Verification): boolean {
  return differences.some(({ kind }) => kind === 'row')
}

type ShownDifference =
  | Exclude<Difference, { kind: 'row' }>
  | (Omit<Extract<Difference, { kind: 'row' }>, 'changes'> & { readonly changes: readonly ShownChange[] })

type Shown = Omit<Verification, 'differences'> & { readonly differences: readonly ShownDifference[] }

const pageBytes = 4_194_304

/** Rows contain event values, and the description of a difference may too. */
async function shown(
  { log, letters }: Store,
  subscription: string,
  difference: Difference,
  isRevealed: boolean,
): Promise<ShownDifference> {
  switch (difference.kind) {
    case 'row': {
      const { expected, actual } = difference
      const changes = difference.changes.map((change) => shownChange(change, isRevealed))
      if (isRevealed) return { ...difference, changes }
      return { ...difference, expected: withoutData(expected), actual: withoutData(actual), changes }
    }
    case 'event': {
      if (isRevealed) return difference
      const { position, what } = difference
      const { events } = await log.readAll(position - 1, { events: 1, bytes: pageBytes })
      const event = events.find((each) => each.position === position)
      if (!event) return { ...difference, what: '***' }
      const revisions = await letters.revisions({ subscription, position })
      return { ...difference, what: redact(what, payloadOf({ event, revisions })) }
    }
    case 'lane':
    case 'count':
      return difference
  }
}

/** `version 2, position 9: {…}` without the data. */
function withoutData(row: string | undefined): string | undefined {
  return row?.slice(0, row.indexOf(':'))
}

function show(out: Output, { subscription, ok, events, rows, counts, differenceCount, differences }: Shown): void {
  const told = Object.entries(counts).map(([outcome, value]) => `${count(value)} ${outcome}`)
  out.data(
    ok ? green('ok') : red('differs'),
    ' ',
    bold(subscription),
    `  ${many(events, 'event')}, ${many(rows, 'row')}: ${told.join(', ')}`,
  )
  for (const difference of differences) {
    out.data('  ', lineOf(difference))
    if (difference.kind === 'row') for (const change of difference.changes) out.data('    ', changeLine(change))
  }
  if (differenceCount > differences.length) out.data(`  … and ${count(differenceCount - differences.length)} more`)
}

function lineOf(difference: ShownDifference): Text {
  switch (difference.kind) {
    case 'row': {
      const { changes, expected = 'none', actual = 'none' } = difference
      const what =
        changes.length > 0
          ? `${many(changes.length, 'field differs', 'fields differ')} (stored → replayed)`
          : expected === actual
            ? 'its promoted columns differ from its data'
            : `should be ${expected}, is ${actual}`
      return ['row ', bold(difference.key), `: ${what}`]
    }
    case 'event':
      return [
        'event ',
        difference.eventId,
        ` at position ${difference.position}, lane `,
        bold(laneName(difference.lane)),
        ': ',
        difference.what,
      ]
    case 'lane':
      return ['lane ', bold(laneName(difference.lane)), ': ', difference.what]
    case 'count':
      return `count ${difference.outcome}: should be ${count(difference.expected)}, is ${count(difference.actual)}`
  }
}

import type { Command } from 'commander'
import { redact } from '../../dead-letter/redact.ts'
import type { Difference, Verification } from '../../engine/verify.ts'
import { action, type Perform, shareNumber, withReason } from '../command.ts'
import type { Output } from '../output/output.ts'
import { Progress } from '../output/progress.ts'
import { bold, dim, green, red, type Text } from '../output/style.ts'
import { count, laneName, many } from '../output/words.ts'
import { isOfOtherCode, liveVersions } from '../report.ts'
import { prepareReveal, type RevealFlags } from '../reveal.ts'

export function addVerify(program: Command, perform: Perform): void {
  const command = program
    .command('verify')
    .argument('[subscription]', 'all unless you say')
    .description('recompute every outcome and every row from the log, and compare; safe beside running engines')
    .option('--load <share>', 'which part of its time it works, up to 1; 0.5 unless you say', shareNumber)
    .option('--reveal', 'show the rows that differ; the audit keeps who and why')
  action<RevealFlags & { readonly load?: number }>(withReason(command), perform, async (ctx, [name], flags) => {
    const chosen = name === undefined ? await ctx.subscriptions() : [await ctx.subscription(name)]
    const stored = name === undefined ? await ctx.stored() : new Map([[name, await ctx.storedSubscription(name)]])
    const versions = await liveVersions(ctx, chosen, stored)
    const reveal = await prepareReveal(ctx, flags)
    const engine = await ctx.engine()
    const results: Verification[] = []
    const skipped: { subscription: string; why: string }[] = []
    for (const subscription of chosen) {
      ctx.signal.throwIfAborted()
      // Asked for by its name, it is an error; among all, it is told.
      const isOther = isOfOtherCode(subscription.consumer, versions)
      if (isOther && name === undefined)
        skipped.push({ subscription: subscription.name, why: 'its live version is not that of this code' })
      else if (!stored.has(subscription.name))
        skipped.push({ subscription: subscription.name, why: 'nobody has ever started it' })
      else if (name === undefined && subscription.source)
        skipped.push({
          subscription: subscription.name,
          why: `it reads from ${subscription.source.name}, which can't be read again`,
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
    const verified = results.map((each) => ({
      ...each,
      differences: each.differences.map((one) => shown(one, flags.reveal === true)),
    }))
    const isOk = results.every(({ ok }) => ok)
    return {
      json: { verified: isOk, subscriptions: verified, skipped },
      show: (out) => {
        for (const each of verified) show(out, each)
        for (const { subscription, why } of skipped) out.data(dim('skipped'), ` ${subscription}: ${why}.`)
        if (!isOk)
          out.talk(
            red('What is there is not what the log makes of it.'),
            ' Keep a copy of the store before anything else.',
          )
      },
      exit: isOk ? 0 : 3,
    }
  })
}

/** Rows have values of events in them, and so may have what went wrong. */
function shown(difference: Difference, isRevealed: boolean): Difference {
  if (isRevealed) return difference
  switch (difference.kind) {
    case 'row':
      return { ...difference, expected: withoutData(difference.expected), actual: withoutData(difference.actual) }
    case 'event':
    case 'lane':
      return { ...difference, what: redact(difference.what) }
    case 'count':
      return difference
  }
}

/** `version 2, position 9: {…}` up to what is in it. */
function withoutData(row: string | undefined): string | undefined {
  return row?.slice(0, row.indexOf(':'))
}

function show(
  out: Output,
  { subscription, ok, events, rows, counts, differenceCount, differences }: Verification,
): void {
  const told = Object.entries(counts).map(([outcome, value]) => `${count(value)} ${outcome}`)
  out.data(
    ok ? green('ok') : red('differs'),
    ' ',
    bold(subscription),
    `  ${many(events, 'event')}, ${many(rows, 'row')}: ${told.join(', ')}`,
  )
  for (const difference of differences) out.data('  ', lineOf(difference))
  if (differenceCount > differences.length) out.data(`  … and ${count(differenceCount - differences.length)} more`)
}

function lineOf(difference: Difference): Text {
  switch (difference.kind) {
    case 'row':
      return [
        'row ',
        bold(difference.key),
        `: should be ${difference.expected ?? 'none'}, is ${difference.actual ?? 'none'}`,
      ]
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

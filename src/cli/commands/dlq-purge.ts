import type { Command } from 'commander'
import { type ActFlags, confirm, reasonOf } from '../act.ts'
import { action, durationMs, type Perform, withConfirmation, withReason } from '../command.ts'
import { fromMs } from '../../runtime/duration.ts'
import { many } from '../output/words.ts'

interface Flags extends ActFlags {
  readonly olderThan?: number
}

const thirtyDaysMs = 30 * 86_400_000

export function addPurge(group: Command, perform: Perform): void {
  const command = group
    .command('purge')
    .argument('<subscription>')
    .description('take away resolved letters that ended long ago; what is known of their incidents stays')
    .option('--older-than <duration>', 'how long ago; 30d unless you say', durationMs)
  action<Flags>(withConfirmation(withReason(command)), perform, async (ctx, [name = ''], flags) => {
    await ctx.storedSubscription(name)
    const operator = await ctx.operator()
    const { olderThan = thirtyDaysMs } = flags
    const counted = () => operator.purgeable(name, { olderThan })
    const letters = await counted()
    const what = `${many(letters, 'letter')} of ${name} that were resolved more than ${fromMs(olderThan)} ago`
    if (flags.dryRun)
      return {
        json: { subscription: name, dryRun: true, letters },
        show: (out) => out.data(`${what} would be purged.`),
      }
    const reason = await reasonOf(ctx, flags)
    const expected = await confirm(ctx, flags, { what: [`${what} will be purged.`], name, count: counted })
    const purged =
      expected === 0 ? { letters: 0, left: undefined } : await operator.purge(name, { reason, olderThan, expected })
    return {
      json: { subscription: name, dryRun: false, letters: purged.letters, left: purged.left ?? null },
      show: (out) => out.data(`${many(purged.letters, 'letter')} purged.`),
    }
  })
}

import type { Command } from 'commander'
import { type ActFlags, confirm, expectHint, reasonOf } from '../act.ts'
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
    .description('delete old resolved letters; their incidents are kept')
    .option('--older-than <duration>', 'the minimum age; default: 30d', durationMs)
  action<Flags>(withConfirmation(withReason(command)), perform, async (ctx, [name = ''], flags) => {
    await ctx.storedSubscription(name)
    const operator = await ctx.operator()
    const { olderThan = thirtyDaysMs } = flags
    const { letters, digest } = await operator.purgeable(name, { olderThan })
    const what = `${many(letters, 'letter')} of ${name}, resolved more than ${fromMs(olderThan)} ago,`
    if (flags.dryRun)
      return {
        json: { subscription: name, dryRun: true, letters, digest },
        show: (out) => {
          out.data(`${what} would be purged.`)
          if (letters > 0) expectHint(ctx, digest)
        },
      }
    const reason = await reasonOf(ctx, flags)
    const again = async () => (await operator.purgeable(name, { olderThan })).digest
    await confirm(ctx, flags, { what: [`${what} will be purged.`], name, digest: again })
    const purged =
      letters === 0
        ? { letters: 0, left: undefined }
        : await operator.purge(name, { reason, olderThan, expected: digest })
    return {
      json: { subscription: name, dryRun: false, letters: purged.letters, left: purged.left ?? null },
      show: (out) => out.data(`${many(purged.letters, 'letter')} purged.`),
    }
  })
}

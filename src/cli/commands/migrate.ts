import type { Command } from 'commander'
import { action, type Perform } from '../command.ts'
import { many } from '../output/words.ts'
import { describeStore } from '../settings.ts'
import { schemaState } from '../store.ts'

interface Flags {
  readonly dryRun?: boolean
  readonly subscriptions?: boolean
}

export function addMigrate(program: Command, perform: Perform): void {
  const command = program
    .command('migrate')
    .description('make the store, or bring its schema up to date, and make what the subscriptions need')
    .option('--dry-run', 'show what would be done, and do nothing')
    .option('--no-subscriptions', 'leave the tables of the subscriptions to whoever starts them')
  action<Flags>(command, perform, async (ctx, _args, { dryRun = false, subscriptions = true }) => {
    const { store, schema } = await ctx.choice()
    const where = describeStore(store, schema)
    const before = await schemaState(store, schema)
    const pending = before?.pending ?? []
    const declared = subscriptions ? (await ctx.subscriptions()).map(({ name }) => name) : []
    if (!dryRun) {
      await ctx.store('make')
      if (subscriptions) await (await ctx.engine()).prepare()
    }
    return {
      json: { store: where, dryRun, migrations: pending, known: before?.known ?? null, subscriptions: declared },
      show: (out) => {
        const done = dryRun ? 'would be applied' : 'applied'
        if (!before) out.data(`${where}: ${dryRun ? 'would be opened' : 'was opened'}, which brings it up to date.`)
        else if (pending.length === 0) out.data(`${where}: up to date (${many(before.known, 'migration')}).`)
        else out.data(`${where}: ${many(pending.length, 'migration')} ${done}: ${pending.join(', ')}.`)
        if (declared.length > 0)
          out.data(`Subscriptions ${dryRun ? 'to be made' : 'made or there'}: ${declared.join(', ')}.`)
      },
    }
  })
}

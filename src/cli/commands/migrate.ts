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
    .description('create the store or update its schema, and create the tables of the subscriptions')
    .option('--dry-run', 'show what would happen and change nothing')
    .option('--no-subscriptions', 'do not create the tables of the subscriptions; holdfast start does')
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
        if (!before)
          out.data(
            `${where}: ${dryRun ? 'would be opened, which updates its schema' : 'opened, its schema is up to date'}.`,
          )
        else if (pending.length === 0) out.data(`${where}: up to date (${many(before.known, 'migration')}).`)
        else out.data(`${where}: ${many(pending.length, 'migration')} ${done}: ${pending.join(', ')}.`)
        if (declared.length > 0) out.data(`Subscriptions ${dryRun ? 'to create' : 'ready'}: ${declared.join(', ')}.`)
      },
    }
  })
}

import type { Command } from 'commander'
import { action, type Perform } from '../command.ts'
import { dim } from '../output/style.ts'
import { describeStore, type Setting } from '../settings.ts'

export function addConfig(program: Command, perform: Perform): void {
  const command = program.command('config').description('show every setting and where it came from')
  action(command, perform, async (ctx) => {
    const settings = await ctx.settings()
    const { file, store, schema, user, name } = settings
    const subscriptions = (await ctx.subscriptions()).map((each) => ({ name: each.name, kind: each.consumer.kind }))
    const shown: Record<string, Setting<string | null>> = {
      config: { value: file.value ?? null, from: file.from },
      store: {
        value: store === undefined ? null : describeStore(store.value, schema.value),
        from: store?.from ?? 'default',
      },
      schema,
      user: { value: user.value ?? null, from: user.from },
      name: { value: name.value ?? null, from: name.from },
    }
    return {
      json: { settings: shown, subscriptions },
      show: (out) => {
        const rows = Object.entries(shown).map(([setting, { value, from }]) => [setting, value ?? dim('-'), dim(from)])
        out.table([{ title: 'setting' }, { title: 'value' }, { title: 'from' }], rows)
        const names = subscriptions.map((each) => `${each.name} (${each.kind})`)
        out.data('subscriptions: ', names.length === 0 ? dim('none') : names.join(', '))
      },
    }
  })
}

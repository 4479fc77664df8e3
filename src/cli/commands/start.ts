import type { Command } from 'commander'
import { createEngine, type Engine } from '../../engine/engine.ts'
import { action, durationMs, type Perform } from '../command.ts'
import { CommandError } from '../errors.ts'
import { lineLogger } from '../output/log-lines.ts'
import { dim } from '../output/style.ts'
import { describeStore } from '../settings.ts'

interface Flags {
  readonly name?: string
  readonly migrate?: boolean
  readonly timeout?: number
  readonly drain?: boolean
}

const stopMs = 10_000

export function addStart(program: Command, perform: Perform): void {
  const command = program
    .command('start')
    .description('run the subscriptions of the configuration until ^C or SIGTERM')
    .option('--name <name>', 'who this process is in leases and in status')
    .option('--timeout <duration>', 'how long a stop waits for what is under way; 10s unless you say', durationMs)
    .option('--no-migrate', 'refuse a store whose schema is not up to date')
    .option('--drain', 'stop when everything that is in the log now has its outcome')
  action<Flags>(command, perform, async (ctx, _args, flags) => {
    const { config, name } = await ctx.settings()
    const subscriptions = await ctx.subscriptions()
    if (subscriptions.length === 0) {
      throw new CommandError(
        'CONFIG_INVALID',
        'The configuration has no subscriptions: there is nothing to run.',
        'Name them in holdfast.config.ts, or make a project with: holdfast init',
      )
    }
    const { store, schema } = await ctx.choice()
    const own = flags.name ?? name.value
    const engine = createEngine({
      ...config.engine,
      store: await ctx.store(flags.migrate === false ? 'use' : 'make'),
      subscriptions,
      logger: config.logger ?? lineLogger(ctx.out, ctx.io),
      ...(own !== undefined && { name: own }),
    })
    await config.onEngine?.(engine)
    const asked = ctx.graceful()
    await engine.start()
    ctx.out.talk(`Running ${subscriptions.map((each) => each.name).join(', ')} on ${describeStore(store, schema)}.`)
    ctx.out.talk(dim('^C stops it; a second ^C forces it.'))
    if (flags.drain) await drain(engine, asked)
    else await once(asked)
    const why = asked.aborted ? String(asked.reason) : 'drained'
    ctx.out.talk(`Stopping (${why}).`)
    const { forced } = await engine.stop({ timeout: flags.timeout ?? stopMs })
    return {
      json: { stopped: why, forced },
      show: (out) => out.talk(forced ? 'Stopped by force: what was under way is done again by the next.' : 'Stopped.'),
      exit: forced ? 1 : 0,
    }
  })
}

async function drain(engine: Engine, asked: AbortSignal): Promise<void> {
  try {
    await engine.drain({ signal: asked })
  } catch (error) {
    if (!asked.aborted) throw error
  }
}

async function once(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  // A timer, because nothing else may be under way, and a process that waits for nothing ends.
  const alive = setInterval(() => undefined, 60_000)
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  clearInterval(alive)
}

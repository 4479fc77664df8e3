import { type Command, Option } from 'commander'
import { createEngine, type Engine } from '../../engine/process/engine.ts'
import { action, durationMs, type Perform } from '../command.ts'
import type { Context } from '../context.ts'
import type { Subscription } from '../../subscription/subscription.ts'
import { globalOptions } from '../again.ts'
import { CommandError, toTold } from '../errors.ts'
import { lineLogger } from '../output/log-lines.ts'
import { dim } from '../output/style.ts'
import { describeStore } from '../settings.ts'

interface Flags {
  readonly name?: string
  readonly migrate?: boolean
  readonly timeout?: number
  readonly drain?: boolean
  readonly only?: readonly string[]
  readonly except?: readonly string[]
  readonly allowEffects?: boolean
}

const stopMs = 10_000

export function addStart(program: Command, perform: Perform): void {
  const command = program
    .command('start')
    .description('run the subscriptions of the configuration until ^C or SIGTERM')
    .option('--name <name>', 'the name of this process in leases and status')
    .option('--timeout <duration>', 'how long a stop waits for work in progress; default: 10s', durationMs)
    .option('--no-migrate', 'refuse a store whose schema is not up to date')
    .option('--only <subscription...>', 'run only these subscriptions')
    .addOption(new Option('--except <subscription...>', 'run all subscriptions except these').conflicts('only'))
    .option('--allow-effects', 'also run on a store with imported letters; handlers repeat their side effects')
    .option('--drain', 'stop when all events that are in the log now are processed')
  action<Flags>(command, perform, async (ctx, _args, flags) => {
    const { config, name } = await ctx.settings()
    const subscriptions = await chosen(ctx, await ctx.declared(), flags)
    const { store, schema } = await ctx.choice()
    const own = flags.name ?? name.value
    const engine = createEngine({
      ...config.engine,
      store: await ctx.store(flags.migrate === false ? 'use' : 'make'),
      subscriptions,
      logger: config.logger ?? lineLogger(ctx.out, ctx.io),
      ...(own !== undefined && { name: own }),
      ...(flags.allowEffects && { allowEffects: true }),
    })
    await config.onEngine?.(engine)
    const asked = ctx.graceful()
    await engine.start().catch((error: unknown) => {
      throw importedHere(ctx, error)
    })
    ctx.out.talk(`Running ${subscriptions.map((each) => each.name).join(', ')} on ${describeStore(store, schema)}.`)
    ctx.out.talk(dim('^C stops it; a second ^C forces it.'))
    try {
      if (flags.drain) await drain(engine, asked)
      else await once(asked)
    } catch (error) {
      // A failed drain must still release the leases.
      await engine.stop({ timeout: flags.timeout ?? stopMs })
      throw error
    }
    const why = asked.aborted ? String(asked.reason) : 'drained'
    ctx.out.talk(`Stopping (${why}).`)
    const { forced } = await engine.stop({ timeout: flags.timeout ?? stopMs })
    return {
      json: { stopped: why, forced },
      show: (out) =>
        out.talk(forced ? 'Stopped by force: the next process repeats the work that was in progress.' : 'Stopped.'),
      exit: forced ? 1 : 0,
    }
  })
}

/** The same command again, or what it leaves out would run too. */
function importedHere(ctx: Context, error: unknown): unknown {
  const { code, message } = toTold(error)
  if (code !== 'STORE_IMPORTED') return error
  const again = ctx.again('--allow-effects', globalOptions)
  return new CommandError(code, message, `If repeated side effects do no harm here: ${again}`, { cause: error })
}

async function chosen(ctx: Context, declared: readonly Subscription[], { only, except }: Flags) {
  const named = new Set<string>()
  for (const name of only ?? except ?? []) named.add((await ctx.subscription(name)).name)
  const left = declared.filter(({ name }) => (only ? named.has(name) : !named.has(name)))
  if (left.length > 0) return left
  throw new CommandError('USAGE', '--except excludes all subscriptions.', 'Remove one of them from --except.')
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
  // The timer keeps the process alive while nothing else is pending.
  const alive = setInterval(() => undefined, 60_000)
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
  clearInterval(alive)
}

import type { Command } from 'commander'
import type { BreakerState } from '../../breaker/breaker.ts'
import { type ActFlags, reasonFlag, reasonOf } from '../act.ts'
import { globalOptions } from '../again.ts'
import { action, type Perform, withReason } from '../command.ts'
import { CommandError, toTold } from '../errors.ts'
import { dim, green, red, type Text, yellow } from '../output/style.ts'
import { withIsoTimes } from '../output/times.ts'
import { ago, many, moment, shellWord } from '../output/words.ts'

export function addBreakers(program: Command, perform: Perform): void {
  const group = program.command('breakers').description('circuit breakers: which endpoints are not called, and why')
  addList(group, perform)
  addIsolate(group, perform)
  addReset(group, perform)
}

function addList(group: Command, perform: Perform): void {
  const command = group
    .command('list')
    .alias('ls')
    .description('list the breakers of all processes')
    .option('--open', 'only breakers that are not closed')
  action<{ readonly open?: boolean }>(command, perform, async (ctx, _args, flags) => {
    const all = await (await ctx.store()).breakers.list()
    const breakers = all
      .filter(({ state }) => !flags.open || state.state !== 'closed')
      .map(({ name, state, revision }) => ({ name, revision, ...state }))
    const now = ctx.clock.now()
    return {
      json: { breakers: withIsoTimes(breakers) },
      show: (out) => {
        if (breakers.length === 0) out.data(flags.open ? 'All breakers are closed.' : 'No breakers yet.')
        else
          out.table(
            [{ title: 'name' }, { title: 'state' }, { title: 'since' }, { title: 'more' }],
            breakers.map((each) => [each.name, stateText(each), dim(since(each, now)), more(each)]),
          )
      },
    }
  })
}

function stateText({ state }: BreakerState): Text {
  return { closed: green, open: red, 'half-open': yellow, isolated: red }[state](state)
}

function since(state: BreakerState, now: number): string {
  if (state.state === 'closed') return ago(state.reset?.at, now)
  return ago(state.state === 'open' ? state.openedAt : state.since, now)
}

function more(state: BreakerState): Text {
  switch (state.state) {
    case 'closed':
      return state.reset ? `reset by ${state.reset.by}` : ''
    case 'open':
      return `next try at ${moment(state.reopensAt)}; opened ${many(state.openings, 'time')} in a row`
    case 'half-open':
      return `${many(state.successes, 'success', 'successes')} so far`
    case 'isolated':
      return `by ${state.by}: ${state.reason}`
  }
}

/** The hint of the library names its option. A similar name is a better hint than any other. */
async function knownBreaker<T>(found: Promise<T>, hint: string): Promise<T> {
  try {
    return await found
  } catch (cause) {
    const told = toTold(cause)
    if (told.code !== 'BREAKER_UNKNOWN' || told.hint?.startsWith('Did you mean')) throw cause
    throw new CommandError(told.code, told.message, hint, { cause })
  }
}

interface IsolateFlags extends ActFlags {
  readonly new?: boolean
}

function addIsolate(group: Command, perform: Perform): void {
  const command = group
    .command('isolate')
    .argument('<breaker>')
    .description('block all calls in all processes until an operator resets the breaker')
    .option('--new', 'also a breaker that is not stored yet because it never failed')
    .option('--dry-run', 'show what would happen and change nothing')
  action<IsolateFlags>(withReason(command), perform, async (ctx, [name = ''], flags) => {
    const operator = await ctx.operator()
    const given = { new: flags.new === true }
    const { state: before } = await knownBreaker(
      operator.breaker(name, given),
      `List the breakers: holdfast breakers list. One that never failed is not stored; to isolate it: ${ctx.again('--new', globalOptions)}`,
    )
    const reason = await reasonOf(ctx, flags)
    const { dryRun = false } = flags
    if (!dryRun) await operator.isolateBreaker(name, reason, given)
    return {
      json: { breaker: name, dryRun, before, state: 'isolated', reason },
      show: (out) => {
        out.data(
          name,
          dryRun ? ' would be isolated.' : ' is isolated. Events that need it wait without using up attempts.',
        )
        if (!dryRun) out.next(`holdfast breakers reset ${shellWord(name)} ${reasonFlag}`)
      },
    }
  })
}

function addReset(group: Command, perform: Perform): void {
  const command = group
    .command('reset')
    .argument('<breaker>')
    .description('close the breaker in all processes and clear its failures')
    .option('--dry-run', 'show what would happen and change nothing')
  action<ActFlags>(withReason(command), perform, async (ctx, [name = ''], flags) => {
    const operator = await ctx.operator()
    const { state: before } = await knownBreaker(operator.breaker(name), 'List the breakers: holdfast breakers list')
    const reason = await reasonOf(ctx, flags)
    const { dryRun = false } = flags
    if (!dryRun) await operator.resetBreaker(name, reason)
    return {
      json: { breaker: name, dryRun, before, state: 'closed', reason },
      show: (out) =>
        out.data(name, dryRun ? ' would be closed.' : ' is closed. Events that wait for it are tried within a second.'),
    }
  })
}

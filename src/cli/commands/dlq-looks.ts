import type { Command } from 'commander'
import type { DeadLetter } from '../../dead-letter/letter.ts'
import type { Incident } from '../../dead-letter/incident.ts'
import type { LetterStats } from '../../dead-letter/letter-store.ts'
import { listHeld } from '../../operator/letters.ts'
import type { Store } from '../../store.ts'
import { action, limitNumber, type Perform, wholeNumber } from '../command.ts'
import type { Context } from '../context.ts'
import {
  type FilterFlags,
  failureLine,
  filterOf,
  letterJson,
  type RevisedLetter,
  withoutPayload,
  withFilter,
  withLane,
  withRevisions,
  withStatus,
} from '../letters.ts'
import { bold, dim, green, red, type Text, yellow } from '../output/style.ts'
import { iso, withIsoTimes } from '../output/times.ts'
import { ago, count, laneName, many } from '../output/words.ts'

export function addLooks(group: Command, perform: Perform): void {
  addList(group, perform)
  addStats(group, perform)
  addIncidents(group, perform)
}

interface ListFlags extends FilterFlags {
  readonly after?: number
  readonly limit?: number
  readonly all?: boolean
}

function addList(group: Command, perform: Perform): void {
  const command = group
    .command('list')
    .alias('ls')
    .argument('[subscription]', 'default: all')
    .description('list held letters in log order')
    .option('--incident <fingerprint>', 'only letters of this incident')
    .option('--after <position>', 'only letters after this position', wholeNumber)
    .option('--limit <n>', 'the number of letters per subscription; default: 50', limitNumber)
  action<ListFlags>(withFilter(withStatus(withLane(command))), perform, async (ctx, [name], flags) => {
    const { letters: stored } = await ctx.store()
    const letters: RevisedLetter[] = []
    /** The first letter of each subscription that is not shown. */
    const rest: DeadLetter[] = []
    const { limit = 50 } = flags
    for (const subscription of await names(ctx, name)) {
      const found = await lettersOf(ctx, subscription, flags, limit + 1)
      for (const letter of found.slice(0, limit)) letters.push(await withRevisions(stored, letter))
      rest.push(...found.slice(limit))
    }
    const now = ctx.clock.now()
    return {
      json: { letters: letters.map((letter) => letterJson(letter)), isWhole: rest.length === 0 },
      show: (out) => {
        if (letters.length === 0) {
          out.talk('No held letters match.')
          return
        }
        out.table(
          [
            ...(name === undefined ? [{ title: 'subscription' }] : []),
            { title: 'position', right: true },
            { title: 'status' },
            { title: 'type' },
            { title: 'lane' },
            { title: 'held' },
            { title: 'attempts', right: true },
            { title: 'failure' },
          ],
          letters.map((letter): Text[] => {
            const shown = letterJson(letter)
            return [
              ...(name === undefined ? [shown.subscription] : []),
              shown.position,
              statusText(shown.status),
              shown.event.type,
              laneName(shown.lane),
              dim(ago(letter.heldAt, now)),
              shown.attempts,
              shown.failure
                ? failureLine(shown.failure)
                : dim(letter.endedAt === undefined ? 'waits for an earlier letter' : '-'),
            ]
          }),
        )
        for (const { subscription, event } of rest) {
          // From the first letter that is not shown: several partitions may have its position.
          const more = `${name === undefined ? `${subscription} ` : ''}--after ${event.position - 1}`
          out.talk(`${subscription} has more letters. To see them: ${ctx.again(more, new Set(['--after']))}`)
        }
        const [first] = letters
        if (first) out.next(`holdfast dlq show ${first.subscription} ${first.event.position}`)
      },
    }
  })
}

/** The given subscription, or all stored ones. */
async function names(ctx: Context, name: string | undefined): Promise<readonly string[]> {
  return name === undefined ? [...(await ctx.stored()).keys()] : [(await ctx.storedSubscription(name)).name]
}

async function lettersOf(
  ctx: Context,
  subscription: string,
  flags: ListFlags,
  limit: number,
): Promise<readonly DeadLetter[]> {
  const store = await ctx.store()
  const { after = 0 } = flags
  const query = { subscription, ...filterOf(flags), after, limit }
  return flags.all ? store.letters.list(query) : listHeld(store, query)
}

export function statusText(status: DeadLetter['status']): Text {
  return { parked: red, waiting: yellow, retrying: yellow, queued: dim, resolved: green, discarded: dim }[status](
    status,
  )
}

function addStats(group: Command, perform: Perform): void {
  const command = group
    .command('stats')
    .argument('[subscription]', 'default: all')
    .description('count letters by status and failure class, with the oldest')
  action(command, perform, async (ctx, [name]) => {
    const store = await ctx.store()
    const subscriptions: (LetterStats & { readonly subscription: string })[] = []
    for (const each of await names(ctx, name))
      subscriptions.push({ subscription: each, ...(await store.letters.stats(each)) })
    const now = ctx.clock.now()
    return {
      json: { subscriptions: subscriptions.map((each) => ({ ...each, oldest: iso(each.oldest) })) },
      show: (out) =>
        out.table(
          [
            { title: 'subscription' },
            { title: 'held lanes', right: true },
            { title: 'letters' },
            { title: 'by class' },
            { title: 'oldest' },
          ],
          subscriptions.map(({ subscription, lanes, byStatus, byClass, oldest }): Text[] => [
            subscription,
            lanes > 0 ? red(count(lanes)) : '0',
            numbers(byStatus),
            numbers(byClass),
            ago(oldest, now),
          ]),
        ),
    }
  })
}

function numbers(by: Readonly<Partial<Record<string, number>>>): string {
  const parts = Object.entries(by)
    .filter(([, value]) => value !== 0)
    .map(([name, value]) => `${count(value ?? 0)} ${name}`)
  return parts.join(', ') || '-'
}

/** An incident quotes its newest letter. Redaction needs the payload of that letter. */
async function withoutValues(store: Store, incident: Incident): Promise<Incident> {
  const { subscription, fingerprint, samples, message } = incident
  const [position] = samples
  // A source may have a position in several partitions.
  const letters =
    position === undefined ? [] : await store.letters.list({ subscription, position, fingerprint, limit: 100 })
  const letter = letters.find(({ failure }) => failure?.message === message)
  if (!letter?.failure) return { ...incident, errorType: '***', message: '***' }
  const { errorType, message: shown } = withoutPayload(letter.failure, await withRevisions(store.letters, letter))
  return { ...incident, errorType, message: shown }
}

interface IncidentFlags {
  readonly incident?: string
  readonly open?: boolean
  readonly limit?: number
}

function addIncidents(group: Command, perform: Perform): void {
  const command = group
    .command('incidents')
    .argument('[subscription]', 'default: all')
    .description('list letters grouped by failure, most recent first')
    .option('--incident <fingerprint>', 'only this incident')
    .option('--open', 'only incidents with held letters')
    .option('--limit <n>', 'the number of incidents per subscription; default: 20', limitNumber)
  action<IncidentFlags>(command, perform, async (ctx, [name], { incident: fingerprint, open = false, limit = 20 }) => {
    const store = await ctx.store()
    const incidents: Incident[] = []
    const cut: string[] = []
    for (const subscription of await names(ctx, name)) {
      const found = await store.letters.incidents({
        subscription,
        open,
        limit: limit + 1,
        ...(fingerprint !== undefined && { fingerprint }),
      })
      // Error messages may quote payload values.
      for (const incident of found.slice(0, limit)) incidents.push(await withoutValues(store, incident))
      if (found.length > limit) cut.push(subscription)
    }
    const now = ctx.clock.now()
    return {
      json: { incidents: withIsoTimes(incidents), isWhole: cut.length === 0 },
      show: (out) => {
        if (incidents.length === 0) out.talk(open ? 'No open incidents.' : 'No incidents.')
        for (const each of incidents) {
          const state = { open: red, regressed: red, resolved: green }[each.state](each.state)
          out.data(bold(each.fingerprint), ' ', state, ' ', each.subscription, dim(` ${each.class}`))
          out.data('  ', each.errorType, ': ', each.message)
          out.data(
            '  ',
            `${count(each.held)} held of ${many(each.letters, 'letter')} in ${many(each.lanes, 'lane')}; `,
            dim(`first ${ago(each.firstSeen, now)}, last ${ago(each.lastSeen, now)}`),
          )
          const [sample] = each.samples
          if (sample !== undefined)
            out.data('  ', dim('Next: '), out.hint(`holdfast dlq show ${each.subscription} ${sample}`))
        }
        for (const subscription of cut) out.talk(`${subscription} has more incidents. Use --limit to see them.`)
      },
    }
  })
}

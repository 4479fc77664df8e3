import type { Command } from 'commander'
import { redact } from '../../dead-letter/redact.ts'
import type { DeadLetter } from '../../dead-letter/letter.ts'
import type { Incident } from '../../dead-letter/incident.ts'
import type { LetterStats } from '../../dead-letter/letter-store.ts'
import type { Store } from '../../store.ts'
import { action, limitNumber, type Perform, wholeNumber } from '../command.ts'
import type { Context } from '../context.ts'
import {
  type FilterFlags,
  failureLine,
  filterOf,
  heldStatuses,
  letterJson,
  payloadOf,
  withFilter,
  withStatus,
} from '../letters.ts'
import { bold, dim, green, red, type Text, yellow } from '../output/style.ts'
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
    .argument('[subscription]', 'all unless you say')
    .description('held letters, in the order of the log')
    .option('--lane <lane>', 'of this lane')
    .option('--fingerprint <fingerprint>', 'of this incident')
    .option('--all', 'also those that are resolved or discarded')
    .option('--after <position>', 'those behind a position', wholeNumber)
    .option('--limit <n>', 'how many of a subscription; 50 unless you say', limitNumber)
  action<ListFlags>(withFilter(withStatus(command)), perform, async (ctx, [name], flags) => {
    const letters: DeadLetter[] = []
    for (const subscription of await names(ctx, name)) letters.push(...(await lettersOf(ctx, subscription, flags)))
    const now = ctx.clock.now()
    return {
      json: { letters: letters.map((letter) => letterJson(letter)) },
      show: (out) => {
        if (letters.length === 0) {
          out.talk('Nothing is held that fits.')
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
            { title: 'tries', right: true },
            { title: 'why' },
          ],
          letters.map((letter): Text[] => {
            const shown = letterJson(letter)
            return [
              ...(name === undefined ? [shown.subscription] : []),
              shown.position,
              statusText(shown.status),
              shown.event.type,
              laneName(shown.lane),
              dim(ago(shown.heldAt, now)),
              shown.attempts,
              shown.failure ? failureLine(shown.failure) : dim('behind another'),
            ]
          }),
        )
        const [first] = letters
        if (first) out.talk(dim('Next: '), `holdfast dlq show ${first.subscription} ${first.event.position}`)
      },
    }
  })
}

/** Which of a command's subscription, or all that there are. */
async function names(ctx: Context, name: string | undefined): Promise<readonly string[]> {
  return name === undefined ? [...(await ctx.stored()).keys()] : [(await ctx.storedSubscription(name)).name]
}

/** Of those that are held, each status is asked for by itself: ended ones may be a thousand times as many. */
async function lettersOf(ctx: Context, subscription: string, flags: ListFlags): Promise<DeadLetter[]> {
  const store = await ctx.store()
  const { limit = 50, after = 0 } = flags
  const query = { subscription, ...filterOf(flags), after, limit }
  if (flags.status !== undefined || flags.all) return [...(await store.letters.list(query))]
  const pages = await Promise.all(heldStatuses.map((status) => store.letters.list({ ...query, status })))
  return pages
    .flat()
    .toSorted((a, b) => a.event.position - b.event.position)
    .slice(0, limit)
}

export function statusText(status: DeadLetter['status']): Text {
  return { parked: red, waiting: yellow, retrying: yellow, queued: dim, resolved: green, discarded: dim }[status](
    status,
  )
}

function addStats(group: Command, perform: Perform): void {
  const command = group
    .command('stats')
    .argument('[subscription]', 'all unless you say')
    .description('how many, since when, by status and by class of failure')
  action(command, perform, async (ctx, [name]) => {
    const store = await ctx.store()
    const subscriptions: (LetterStats & { readonly subscription: string })[] = []
    for (const each of await names(ctx, name))
      subscriptions.push({ subscription: each, ...(await store.letters.stats(each)) })
    const now = ctx.clock.now()
    return {
      json: { subscriptions: subscriptions.map((each) => ({ ...each, oldest: each.oldest ?? null })) },
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

/** The message is that of the newest letter; with that at hand, its values can be told from its words. */
async function withoutValues(store: Store, incident: Incident): Promise<Incident> {
  const { subscription, samples, message } = incident
  const [position] = samples
  const [letter] = position === undefined ? [] : await store.letters.list({ subscription, position, limit: 1 })
  return { ...incident, message: redact(message, letter && payloadOf(letter)) }
}

interface IncidentFlags {
  readonly fingerprint?: string
  readonly limit?: number
}

function addIncidents(group: Command, perform: Perform): void {
  const command = group
    .command('incidents')
    .argument('[subscription]', 'all unless you say')
    .description('letters that failed alike, the one that was seen last first')
    .option('--fingerprint <fingerprint>', 'only this one')
    .option('--limit <n>', 'how many of a subscription; 20 unless you say', limitNumber)
  action<IncidentFlags>(command, perform, async (ctx, [name], { fingerprint, limit = 20 }) => {
    const store = await ctx.store()
    const incidents: Incident[] = []
    for (const subscription of await names(ctx, name)) {
      const found = await store.letters.incidents({
        subscription,
        limit,
        ...(fingerprint !== undefined && { fingerprint }),
      })
      // Messages of errors quote what they are about.
      for (const incident of found) incidents.push(await withoutValues(store, incident))
    }
    const now = ctx.clock.now()
    return {
      json: { incidents },
      show: (out) => {
        if (incidents.length === 0) out.talk('There are none.')
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
          if (sample !== undefined) out.data('  ', dim('Next: '), `holdfast dlq show ${each.subscription} ${sample}`)
        }
      },
    }
  })
}

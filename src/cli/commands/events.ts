import { setTimeout } from 'node:timers/promises'
import { text as readAll } from 'node:stream/consumers'
import { type Command, Option } from 'commander'
import type { EventCatalog } from '../../event/catalog.ts'
import { type Metadata, parseMetadata, type RecordedEvent } from '../../event/event.ts'
import { checkKey } from '../../log/admit.ts'
import { createLog } from '../../log/log.ts'
import type { LogStore } from '../../log/log-store.ts'
import { shapeOf } from '../../dead-letter/shape.ts'
import { type ActFlags, reasonOf } from '../act.ts'
import { action, limitNumber, type Perform, wholeNumber, withReason } from '../command.ts'
import { checkJson } from '../json.ts'
import type { Context } from '../context.ts'
import { CommandError } from '../errors.ts'
import { bold, cyan, dim, type Text } from '../output/style.ts'
import { count } from '../output/words.ts'
import { lineOf, prepareReveal, type RevealFlags, shownBody } from '../reveal.ts'

export function addEvents(program: Command, perform: Perform): void {
  const group = program.command('events').description('the log: what happened')
  addTail(group, perform)
  addShow(group, perform)
  addHistory(group, perform)
  addAppend(group, perform)
}

const pageBytes = 4_194_304
const perPage = 500
const shownEvents = 10
const pollMs = 500

interface TailFlags extends RevealFlags {
  readonly last?: number
  readonly after?: number
  readonly follow?: boolean
  readonly key?: string
  readonly type?: string
}

function withReveal(command: Command): Command {
  return withReason(command.option('--reveal', 'show the values; the audit keeps who and why'))
}

function addTail(group: Command, perform: Perform): void {
  const command = group
    .command('tail')
    .description('the last events; shapes instead of values')
    .addOption(new Option('--last <n>', 'how many; 10 unless you say').argParser(limitNumber).conflicts('after'))
    .option('--after <position>', 'all that follow a position, instead', wholeNumber)
    .option('-f, --follow', 'and those that come, until ^C; with --json a line each')
    .option('--key <key>', 'only of this key')
    .option('--type <type>', 'only of this type')
  action<TailFlags>(withReveal(command), perform, async (ctx, _args, flags) => {
    const { log } = await ctx.store()
    const wanted = ({ key, type }: RecordedEvent) =>
      (flags.key === undefined || flags.key === key) && (flags.type === undefined || flags.type === type)
    const { last = shownEvents } = flags
    const reveal = await prepareReveal(ctx, flags)
    // What comes is shown as it comes.
    if (flags.follow) await reveal('log')
    const from = flags.after ?? (await startOfLast(log, last, wanted))
    const asked = flags.follow ? ctx.graceful() : ctx.signal
    const events: RecordedEvent[] = []
    const tell = (event: RecordedEvent) => {
      if (!flags.follow) {
        events.push(event)
        if (events.length > most) throw tooMany()
      } else if (ctx.out.isJson) ctx.out.document({ ok: true, event: jsonOf(event, flags) })
      else ctx.out.data(lineFor(event, flags))
    }
    let after = await readOn(log, from, wanted, tell)
    if (!flags.follow) {
      await reveal('log')
      const shown = flags.after === undefined ? events.slice(-last) : events
      return {
        json: { events: shown.map((event) => jsonOf(event, flags)), through: after },
        show: (out) => {
          for (const event of shown) out.data(lineFor(event, flags))
          if (shown.length === 0) out.talk('There are none.')
        },
      }
    }
    const wake = { now: () => undefined as void }
    const forget = log.onAppend(() => wake.now())
    try {
      while (!asked.aborted) {
        const woken = new AbortController()
        wake.now = () => woken.abort()
        after = await readOn(log, after, wanted, tell)
        await setTimeout(pollMs, undefined, { signal: AbortSignal.any([asked, woken.signal]) }).catch(() => undefined)
      }
    } finally {
      forget()
    }
    return undefined
  })
}

const most = 10_000

function tooMany(): CommandError {
  return new CommandError(
    'USAGE',
    `There are more than ${count(most)} such events.`,
    'Give a later --after, or --follow, which keeps none.',
  )
}

async function readOn(
  log: LogStore,
  from: number,
  wanted: (event: RecordedEvent) => boolean,
  tell: (event: RecordedEvent) => void,
): Promise<number> {
  for (let after = from; ; ) {
    const { events, through } = await log.readAll(after, { events: perPage, bytes: pageBytes })
    for (const event of events) if (wanted(event)) tell(event)
    if (through === after) return after
    after = through
  }
}

/** Positions may have holes, so it goes back until there are enough, or nothing is left. */
async function startOfLast(log: LogStore, last: number, wanted: (event: RecordedEvent) => boolean): Promise<number> {
  const head = await log.head()
  for (let back = last; ; back *= 4) {
    const after = Math.max(0, head - back)
    let found = 0
    await readOn(log, after, wanted, () => void found++)
    if (found >= last || after === 0) return after
  }
}

function addShow(group: Command, perform: Perform): void {
  const command = group
    .command('show')
    .argument('<event>', 'its position, or its key and version as key@version')
    .description('one event; its shape, unless it is to be revealed')
  action<RevealFlags>(withReveal(command), perform, async (ctx, [name = ''], flags) => {
    const { log } = await ctx.store()
    const event = await find(log, name)
    await (await prepareReveal(ctx, flags))(`log/${event.position}`)
    return {
      json: { event: jsonOf(event, flags) },
      show: (out) => {
        const { position, id, type, key, version, schemaVersion, time, body, metadata } = event
        out.data(bold(type), dim(` at position ${position}`))
        const rows: [string, Text][] = [
          ['id', id],
          ['key', key],
          ['version', version ?? '-'],
          ['schema', schemaVersion],
          ['time', time],
          ['bytes', count(Buffer.byteLength(body))],
          [
            'metadata',
            metadata === undefined ? dim('none') : flags.reveal ? metadata : lineOf(shownBody(metadata, false)),
          ],
          ['data', lineOf(shownBody(body, flags.reveal === true))],
        ]
        for (const [title, value] of rows) out.data('  ', dim(title.padEnd(9)), value)
        if (!flags.reveal) out.talk(dim('Values are private: --reveal shows them.'))
      },
    }
  })
}

async function find(log: LogStore, name: string): Promise<RecordedEvent> {
  const limits = { events: 1, bytes: pageBytes }
  const at = name.lastIndexOf('@')
  if (at > 0 && /^\d{1,15}$/.test(name.slice(at + 1))) {
    const version = Number(name.slice(at + 1))
    const [event] = version === 0 ? [] : await log.readKey(name.slice(0, at), version - 1, limits)
    if (event?.version === version) return event
    throw noEvent(name)
  }
  if (!/^\d{1,15}$/.test(name)) {
    throw new CommandError(
      'USAGE',
      `${JSON.stringify(name)} is neither a position nor key@version.`,
      'Find it: holdfast events history <key>',
    )
  }
  const position = Number(name)
  const page = position === 0 ? undefined : await log.readAll(position - 1, limits)
  const [event] = page?.events ?? []
  if (event?.position === position) return event
  throw noEvent(name)
}

function noEvent(name: string): CommandError {
  return new CommandError(
    'NOT_FOUND',
    `The log has no event ${JSON.stringify(name)}.`,
    'See the last ones: holdfast events tail',
  )
}

interface HistoryFlags extends RevealFlags {
  readonly after?: number
  readonly limit?: number
}

function addHistory(group: Command, perform: Perform): void {
  const command = group
    .command('history')
    .argument('<key>')
    .description('the events of a key, in order')
    .option('--after <version>', 'those that follow a version', wholeNumber)
    .option('--limit <n>', 'how many; 100 unless you say', limitNumber)
  action<HistoryFlags>(withReveal(command), perform, async (ctx, [key = ''], flags) => {
    checkKey(key)
    const { log } = await ctx.store()
    const { after = 0, limit = 100 } = flags
    const reveal = await prepareReveal(ctx, flags)
    const events: RecordedEvent[] = []
    for (let from = after; events.length < limit; ) {
      const page = await log.readKey(key, from, { events: limit - events.length, bytes: pageBytes })
      const last = page.at(-1)
      if (last?.version === undefined) break
      events.push(...page)
      from = last.version
    }
    if (events.length === 0)
      throw new CommandError(
        'NOT_FOUND',
        `The log has no event of ${JSON.stringify(key)}${after > 0 ? ` after version ${after}` : ''}.`,
        'See the last ones: holdfast events tail',
      )
    await reveal(`log/${key}`)
    return {
      json: { key, events: events.map((event) => jsonOf(event, flags)) },
      show: (out) => {
        for (const event of events) out.data(lineFor(event, flags))
      },
    }
  })
}

interface AppendFlags extends ActFlags {
  readonly data: string
  readonly id?: string
  readonly expectedVersion?: number | 'new'
  readonly metadata?: string
  readonly raw?: boolean
}

function addAppend(group: Command, perform: Perform): void {
  const command = group
    .command('append')
    .argument('<key>')
    .argument('<type>')
    .description('append one event; it is checked by its schema, and says who appended it')
    .requiredOption('--data <json>', 'its data; - reads it from stdin')
    .option('--id <id>', 'its id: with it, a repeat changes nothing')
    .option('--expected-version <n>', 'the version the key must have; new for none', expectedVersion)
    .option('--metadata <json>', 'what travels with it')
    .option('--raw', 'without a schema: also a type that nobody knows')
    .option('--dry-run', 'check it, and append nothing')
  action<AppendFlags>(withReason(command), perform, async (ctx, [key = '', type = ''], flags) => {
    const json = checkJson(flags.data === '-' ? await readAll(ctx.io.stdin) : flags.data, '--data', 'EVENT_NOT_JSON')
    const metadata = metadataOf(flags.metadata)
    const events = flags.raw ? undefined : await catalogOf(ctx, type)
    const reason = await reasonOf(ctx, flags)
    const by = await ctx.user()
    const draft = { type, json, metadata: { ...metadata, actor: by }, ...(flags.id !== undefined && { id: flags.id }) }
    const { dryRun = false } = flags
    if (dryRun) {
      // The door of the log is the check; behind it nobody takes anything.
      const nowhere = {
        log: { append: async () => ({ outcome: 'appended', version: 0, position: 0 }) } as unknown as LogStore,
      }
      await createLog({ store: nowhere, ...(events && { events }) }).append(key, [draft])
      return { json: { dryRun, key, type }, show: (out) => out.data('It would be appended.') }
    }
    const store = await ctx.store()
    const log = createLog({ store, ...(events && { events }) })
    const { expectedVersion: expected } = flags
    const deed = { by, act: 'event.append', target: `log/${key}`, reason, at: ctx.clock.now(), details: { type } }
    const done = await log.append(key, [draft], { deed, ...(expected !== undefined && { expectedVersion: expected }) })
    return {
      json: { dryRun, key, type, ...done },
      show: (out) => {
        const what = done.repeated ? 'It was there already' : 'Appended'
        out.data(`${what}: `, cyan(type), ' of ', key, ` at version ${done.version}, position ${done.position}.`)
      },
    }
  })
}

function expectedVersion(text: string): number | 'new' {
  return text === 'new' ? text : wholeNumber(text)
}

function metadataOf(text: string | undefined): Metadata {
  if (text === undefined) return {}
  let found: Metadata | undefined
  try {
    const value: unknown = parseMetadata(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) found = value as Metadata
  } catch {
    // Falls through to the refusal, which says all there is to say.
  }
  if (found === undefined)
    throw new CommandError('USAGE', '--metadata is no JSON object.', `Such as: --metadata '{"tenant":"acme"}'`)
  if (Object.hasOwn(found, 'actor'))
    throw new CommandError('USAGE', '--metadata says who the actor is.', 'That is who appends: say it with --as.')
  return found
}

/** Of the configuration, or of the first subscription that knows the type. */
async function catalogOf(ctx: Context, type: string): Promise<EventCatalog> {
  const { config } = await ctx.settings()
  const catalogs = config.events ? [config.events] : (await ctx.subscriptions()).map(({ consumer }) => consumer.events)
  const found = catalogs.find((catalog) => catalog.entry(type) !== undefined)
  if (found) return found
  const known = [...new Set(catalogs.flatMap((catalog) => Object.keys(catalog.types)))]
  throw new CommandError(
    'NOT_FOUND',
    `No catalog of the configuration has the type ${JSON.stringify(type)}. ${known.length === 0 ? 'There is none.' : `They have ${known.join(', ')}.`}`,
    'Mend its spelling, or append it without a schema: --raw',
  )
}

function jsonOf(
  { position, id, type, key, version, schemaVersion, time, body, metadata }: RecordedEvent,
  { reveal = false }: RevealFlags,
) {
  return {
    position,
    id,
    type,
    key,
    version: version ?? null,
    schemaVersion,
    time,
    ...shownBody(body, reveal),
    metadata: metadata === undefined ? null : reveal ? parseMetadata(metadata) : shapeOf(parseMetadata(metadata)),
  }
}

function lineFor({ position, time, type, key, version, body }: RecordedEvent, { reveal = false }: RevealFlags): Text {
  const at = version === undefined ? key : [key, dim(`@${version}`)]
  return [
    String(position).padStart(8),
    '  ',
    dim(time),
    '  ',
    cyan(type),
    '  ',
    at,
    '  ',
    lineOf(shownBody(body, reveal)),
  ]
}

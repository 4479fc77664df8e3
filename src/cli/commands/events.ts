import { setTimeout } from 'node:timers/promises'
import { text as readAll } from 'node:stream/consumers'
import type { Command } from 'commander'
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
import { count, shellWord } from '../output/words.ts'
import { lineOf, prepareReveal, type RevealFlags, revealHint, shownBody } from '../reveal.ts'

export function addEvents(program: Command, perform: Perform): void {
  const group = program.command('events').description('the event log')
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
  readonly limit?: number
  readonly after?: number
  readonly follow?: boolean
  readonly key?: string
  readonly type?: string
}

function withReveal(command: Command): Command {
  return withReason(command.option('--reveal', 'show the values; recorded in the audit'))
}

function addTail(group: Command, perform: Perform): void {
  const command = group
    .command('tail')
    .description('list the newest events; shapes instead of values without --reveal')
    .option(
      '--after <position>',
      'list the events after this position instead; all of them without --limit',
      wholeNumber,
    )
    .option('--limit <n>', `the number of events; default: ${shownEvents}`, limitNumber)
    .option('-f, --follow', 'also print new events, until ^C; with --json one line each')
    .option('--key <key>', 'only events of this key')
    .option('--type <type>', 'only events of this type')
  action<TailFlags>(withReveal(command), perform, async (ctx, _args, flags) => {
    const { log } = await ctx.store()
    const wanted = ({ key, type }: RecordedEvent) =>
      (flags.key === undefined || flags.key === key) && (flags.type === undefined || flags.type === type)
    const reveal = await prepareReveal(ctx, flags)
    // New events are shown immediately, so the audit entry comes first.
    if (flags.follow) await reveal('log')
    const from = flags.after ?? (await startOfLast(log, flags.limit ?? shownEvents, wanted))
    const asked = flags.follow ? ctx.graceful() : ctx.signal
    const events: RecordedEvent[] = []
    const tell = (event: RecordedEvent) => {
      if (!flags.follow) {
        events.push(event)
        if (events.length > mostShown) throw tooMany()
      } else if (ctx.out.isJson) ctx.out.document({ ok: true, event: jsonOf(event, flags) })
      else ctx.out.data(lineFor(event, flags))
    }
    const most = flags.after !== undefined && !flags.follow ? flags.limit : undefined
    let after = await readOn(log, from, wanted, tell, () => events.length === most)
    if (!flags.follow) {
      await reveal('log')
      const shown = flags.after === undefined ? events.slice(-(flags.limit ?? shownEvents)) : events
      return {
        json: { events: shown.map((event) => jsonOf(event, flags)), through: after },
        show: (out) => {
          for (const event of shown) out.data(lineFor(event, flags))
          if (shown.length === 0) out.talk('No events.')
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

const mostShown = 10_000

function tooMany(): CommandError {
  return new CommandError(
    'USAGE',
    `More than ${count(mostShown)} events match.`,
    'Use --limit or a later --after, or --follow to stream them.',
  )
}

async function readOn(
  log: LogStore,
  from: number,
  wanted: (event: RecordedEvent) => boolean,
  tell: (event: RecordedEvent) => void,
  isEnough: () => boolean = () => false,
): Promise<number> {
  for (let after = from; ; ) {
    const { events, through } = await log.readAll(after, { events: perPage, bytes: pageBytes })
    for (const event of events) {
      if (wanted(event)) tell(event)
      if (isEnough()) return event.position
    }
    if (through === after) return after
    after = through
  }
}

/** Positions may have gaps, so the search goes further back until it finds enough events or reaches the start. */
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
    .argument('<event>', 'its position, its id, or its key and version as key@version')
    .description('show one event; its shape instead of values without --reveal')
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
        if (!flags.reveal) out.talk(revealHint(out, `holdfast events show ${shellWord(name)}`))
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
  }
  if (/^\d{1,15}$/.test(name)) {
    const position = Number(name)
    const page = position === 0 ? undefined : await log.readAll(position - 1, limits)
    const [event] = page?.events ?? []
    if (event?.position === position) return event
  }
  // Ids come last: a user who types a number means a position, but an id may look like one.
  const event = await log.find(name)
  if (event) return event
  throw noEvent(name)
}

function noEvent(name: string): CommandError {
  return new CommandError('NOT_FOUND', `The log has no event ${JSON.stringify(name)}.`, 'holdfast events tail')
}

interface HistoryFlags extends RevealFlags {
  readonly after?: number
  readonly limit?: number
}

function addHistory(group: Command, perform: Perform): void {
  const command = group
    .command('history')
    .argument('<key>')
    .description('list the events of a key in order')
    .option('--after <version>', 'only events after this version', wholeNumber)
    .option('--limit <n>', 'the number of events; default: 100', limitNumber)
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
        `The log has no event with the key ${JSON.stringify(key)}${after > 0 ? ` after version ${after}` : ''}.`,
        'holdfast events tail',
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
    .description('append one event; its schema is checked, and your name is recorded as its actor')
    .requiredOption('--data <json>', 'the data; - reads it from stdin')
    .option('--id <id>', 'the event id; appending the same id again changes nothing')
    .option('--expected-version <n>', 'the current version of the key, or new if it has no events', expectedVersion)
    .option('--metadata <json>', 'metadata to store with the event')
    .option('--raw', 'skip the schema check; also allows unknown types')
    .option('--dry-run', 'check the event and append nothing')
  action<AppendFlags>(withReason(command), perform, async (ctx, [key = '', type = ''], flags) => {
    const json = checkJson(flags.data === '-' ? await readAll(ctx.io.stdin) : flags.data, '--data', 'EVENT_NOT_JSON')
    const metadata = metadataOf(flags.metadata)
    const events = flags.raw ? undefined : await catalogOf(ctx, type)
    const reason = await reasonOf(ctx, flags)
    const by = await ctx.user()
    const draft = { type, json, metadata: { ...metadata, actor: by }, ...(flags.id !== undefined && { id: flags.id }) }
    const { dryRun = false } = flags
    if (dryRun) {
      // `append` does all checks; this store keeps nothing.
      const nowhere = {
        log: { append: async () => ({ outcome: 'appended', version: 0, position: 0 }) } as unknown as LogStore,
      }
      await createLog({ store: nowhere, ...(events && { events }) }).append(key, [draft])
      return { json: { dryRun, key, type }, show: (out) => out.data('The event is valid. Nothing was appended.') }
    }
    const store = await ctx.store()
    const log = createLog({ store, ...(events && { events }) })
    const { expectedVersion: expected } = flags
    const deed = { by, act: 'event.append', target: `log/${key}`, reason, at: ctx.clock.now(), details: { type } }
    const done = await log.append(key, [draft], { deed, ...(expected !== undefined && { expectedVersion: expected }) })
    return {
      json: { dryRun, key, type, ...done },
      show: (out) => {
        const what = done.repeated ? 'Already in the log' : 'Appended'
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
    // Reported below.
  }
  if (found === undefined)
    throw new CommandError('USAGE', '--metadata is not a valid JSON object.', `Example: --metadata '{"tenant":"acme"}'`)
  if (Object.hasOwn(found, 'actor'))
    throw new CommandError(
      'USAGE',
      '--metadata must not contain "actor".',
      'The actor is the user who appends. Use --as to set the name.',
    )
  return found
}

/** The catalog of the configuration, or of the first subscription that knows the type. */
async function catalogOf(ctx: Context, type: string): Promise<EventCatalog> {
  const { config } = await ctx.settings()
  const catalogs = config.events ? [config.events] : (await ctx.subscriptions()).map(({ consumer }) => consumer.events)
  const found = catalogs.find((catalog) => catalog.entry(type) !== undefined)
  if (found) return found
  const known = [...new Set(catalogs.flatMap((catalog) => Object.keys(catalog.types)))]
  throw new CommandError(
    'NOT_FOUND',
    `No catalog of the configuration has the type ${JSON.stringify(type)}. ${known.length === 0 ? 'No types are declared.' : `Known: ${known.join(', ')}.`}`,
    'Fix the spelling, or append without a schema: --raw',
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

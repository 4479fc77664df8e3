import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { originOf } from '../../dead-letter/stack.ts'

/** A call that reads something that is not in the arguments, or has an effect outside. */
export interface OutsideCall {
  /** For example `Date.now`. */
  readonly call: string
  /** The line of user code that made the call, such as `orders.test.ts:31`; undefined if there is none on the stack. */
  readonly place: string | undefined
}

type Kind = 'time' | 'chance' | 'wait' | 'reach'
/** The kind of code that is watched. */
export type Who = 'fold' | 'decision' | 'handler'

const current = new AsyncLocalStorage<OutsideWatch>()
let open = 0
let restore: (() => void) | undefined

/**
 * Records calls of the clock, randomness, timers and the network by code inside `run`, and executes them. Globals are replaced
 * while any watch is open, and restored when the last one closes; code outside a watch is not recorded.
 *
 * Not recorded: functions that were saved before (`const { now } = Date`), and calls of schemas and upcasts.
 */
export class OutsideWatch implements Disposable {
  readonly calls: OutsideCall[] = []
  #isOpen = true

  constructor() {
    if (open++ === 0) restore = exchange()
  }

  run<T>(work: () => T): T {
    return current.run(this, work)
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (--open > 0) return
    restore?.()
    restore = undefined
  }
}

/** Describes the recorded calls, and what to do about them. */
export function explain(calls: readonly OutsideCall[], who: Who): string[] {
  const fetching = new Set(calls.filter(({ call }) => call === 'fetch').map(({ place }) => place))
  const told = calls.filter(({ call, place }) => call !== connection || !fetching.has(place))
  const lines = new Set(told.map(({ call, place }) => `${place ?? 'Unknown code'} calls ${call}.`))
  const hints = new Set(told.map(({ call }) => hintOf[kinds.get(call) ?? 'reach'][who]))
  return [...lines, ...hints]
}

const kinds = new Map<string, Kind>([
  ['Date.now', 'time'],
  ['new Date()', 'time'],
  ['Date()', 'time'],
  ['performance.now', 'time'],
  ['Math.random', 'chance'],
  ['crypto.randomUUID', 'chance'],
  ['crypto.getRandomValues', 'chance'],
  ['setTimeout', 'wait'],
  ['setInterval', 'wait'],
  ['setImmediate', 'wait'],
  ['process.hrtime', 'time'],
  ['process.hrtime.bigint', 'time'],
])

/** Functions of Node's modules to replace. Imports see the replacement, too. */
const builtins: readonly { readonly module: string; readonly kind: Kind; readonly names: readonly string[] }[] = [
  {
    module: 'crypto',
    kind: 'chance',
    names: ['randomUUID', 'randomBytes', 'randomInt', 'randomFill', 'randomFillSync', 'getRandomValues'],
  },
  { module: 'timers', kind: 'wait', names: ['setTimeout', 'setInterval', 'setImmediate'] },
  { module: 'timers/promises', kind: 'wait', names: ['setTimeout', 'setInterval', 'setImmediate'] },
  {
    module: 'child_process',
    kind: 'reach',
    names: ['exec', 'execFile', 'execFileSync', 'execSync', 'fork', 'spawn', 'spawnSync'],
  },
  { module: 'fs', kind: 'reach', names: filesOf('fs') },
  { module: 'fs/promises', kind: 'reach', names: filesOf('fs/promises') },
]

function builtin(module: string): Record<string, unknown> {
  return createRequire(import.meta.url)(`node:${module}`) as Record<string, unknown>
}

/** All functions that open a file by name. Writing to an open file is usually logging, and is ignored. */
function filesOf(module: string): readonly string[] {
  const opened = /^(?:_|close|f[a-z]*$|f[a-z]*Sync$|read$|readSync$|readv|write$|writeSync$|writev|unwatchFile$)/
  return Object.keys(builtin(module)).filter(
    (name) => typeof builtin(module)[name] === 'function' && /^[a-z]/.test(name) && !opened.test(name),
  )
}

for (const { module, kind, names } of builtins) for (const name of names) kinds.set(`${module}.${name}`, kind)

const connection = 'a connection of node:net'
const fromEvent = {
  time: 'Take the time from the event: event.time is when it happened.',
  chance: 'Take it from the event: event.id is unique, or put the random value into its data.',
}
const before = 'Read it before the command is executed, and use the value in the decision.'
const handedIn =
  'Make it a dependency of the handler (dependencies, or outside.reach(…) in a simulation), so that a test can replace it.'

const hintOf: Record<Kind, Record<Who, string>> = {
  time: { fold: fromEvent.time, decision: before, handler: fromEvent.time },
  chance: { fold: fromEvent.chance, decision: before, handler: fromEvent.chance },
  wait: { fold: 'Do not wait here: do it in a handler.', decision: before, handler: handedIn },
  reach: {
    fold: 'Call services in a handler, and put the answer into an event.',
    decision: before,
    handler: handedIn,
  },
}

function notice(call: string, caller: (...args: never[]) => unknown): void {
  const watch = current.getStore()
  if (!watch) return
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 50
  const here = { stack: '' }
  Error.captureStackTrace(here, caller)
  Error.stackTraceLimit = stackTraceLimit
  const frames = here.stack.split('\n').filter((line) => line.trim().startsWith('at '))
  const [first = ''] = frames
  // The engine itself, between two frames of user code.
  if (originOf(first) === 'holdfast') return
  // Made by Node for a call that is recorded itself, such as fetch.
  if (kinds.has(call) && /\bnode:/.test(first)) return
  const own = frames.find((frame) => originOf(frame) === undefined)
  watch.calls.push({ call, place: own === undefined ? undefined : placeOf(own) })
}

const location = /\(?((?:file:|\/|[A-Za-z]:[\\/])[^()]*?)(?:\?[^:]*)?:(\d+):\d+\)?$/

function placeOf(frame: string): string | undefined {
  const [, file, line] = location.exec(frame) ?? []
  if (file === undefined || line === undefined) return undefined
  const path = relative(process.cwd(), file.startsWith('file:') ? fileURLToPath(file) : file)
  return `${path}:${line}`
}

/** Returns a function that restores everything. */
function exchange(): () => void {
  const undo = [
    ...[Date, performance].map((owner) =>
      exchangeMember(owner, 'now', owner === Date ? 'Date.now' : 'performance.now'),
    ),
    exchangeMember(Math, 'random', 'Math.random'),
    exchangeMember(crypto, 'randomUUID', 'crypto.randomUUID'),
    exchangeMember(crypto, 'getRandomValues', 'crypto.getRandomValues'),
    ...['setTimeout', 'setInterval', 'setImmediate', 'fetch'].map((name) => exchangeMember(globalThis, name, name)),
    exchangeDate(),
    exchangeMember(process.hrtime, 'bigint', 'process.hrtime.bigint'),
    exchangeMember(process, 'hrtime', 'process.hrtime'),
    ...builtins.flatMap(({ module, names }) =>
      names.map((name) => exchangeMember(builtin(module), name, `${module}.${name}`)),
    ),
    listen('http.client.request.created', 'a request of node:http'),
    listen('net.client.socket', connection),
  ]
  syncBuiltinESMExports()
  return () => {
    for (const back of undo.toReversed()) back()
    syncBuiltinESMExports()
  }
}

/** The object that has the member: `crypto.randomUUID` is on a prototype. */
function exchangeMember(object: object, name: string, call: string): () => void {
  let owner: object | null = object
  while (owner && !Object.hasOwn(owner, name)) owner = Object.getPrototypeOf(owner) as object | null
  const found = owner && Object.getOwnPropertyDescriptor(owner, name)
  const original: unknown = found?.value
  if (!owner || !found || typeof original !== 'function' || !found.configurable) return () => undefined
  const seen = new Proxy(original, {
    apply: function seen(target, self, args) {
      notice(call, seen)
      return Reflect.apply(target, self, args) as unknown
    },
  })
  return put(owner, name, found, seen)
}

/** Only calls that read the current time: the rest of `Date` is a calendar. */
function exchangeDate(): () => void {
  const found = Object.getOwnPropertyDescriptor(globalThis, 'Date') as PropertyDescriptor
  const seen = new Proxy(Date, {
    construct: function seen(target, args, newTarget) {
      if (args.length === 0) notice('new Date()', seen)
      return Reflect.construct(target, args, newTarget) as object
    },
    apply: function seen(target, self, args) {
      notice('Date()', seen)
      return Reflect.apply(target, self, args) as unknown
    },
  })
  return put(globalThis, 'Date', found, seen)
}

function put(owner: object, name: string, found: PropertyDescriptor, value: unknown): () => void {
  Object.defineProperty(owner, name, { ...found, value })
  return () => {
    // If other code, such as fake timers, has replaced it since, that code will restore it.
    if (Reflect.get(owner, name) === value) Object.defineProperty(owner, name, found)
  }
}

function listen(channel: string, call: string): () => void {
  const hear = () => notice(call, hear)
  subscribe(channel, hear)
  return () => void unsubscribe(channel, hear)
}

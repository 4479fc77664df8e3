import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { originOf } from '../../dead-letter/stack.ts'

/** A call by which code learns something that is not in its arguments, or does something to the outside. */
export interface OutsideCall {
  /** Such as `Date.now`. */
  readonly call: string
  /** The line of the user's that called, such as `orders.test.ts:31`; undefined if none of theirs is on the stack. */
  readonly place: string | undefined
}

type Kind = 'time' | 'chance' | 'wait' | 'reach'
/** Whose code it is that was watched. */
export type Who = 'fold' | 'decision' | 'handler'

const current = new AsyncLocalStorage<OutsideWatch>()
let open = 0
let restore: (() => void) | undefined

/**
 * Sees what runs inside of `run` call the clock, chance, timers and the network, and lets it. The globals are exchanged while any
 * watch is open, and are as they were when the last one is closed; code that runs in no watch passes through them unseen.
 *
 * It does not see what somebody took before it was opened (`const { now } = Date`), and what a schema or an upcast does.
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

/** What a watch saw of what, and what to do about it. */
export function explain(calls: readonly OutsideCall[], who: Who): string[] {
  const fetching = new Set(calls.filter(({ call }) => call === 'fetch').map(({ place }) => place))
  const told = calls.filter(({ call, place }) => call !== connection || !fetching.has(place))
  const lines = new Set(told.map(({ call, place }) => `${place ?? 'Something'} calls ${call}.`))
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

/** What Node's own modules have: of each, what to see and what that is. An import of it sees the exchange, too. */
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

/** All that touches a file by its name. What is already open is mostly a log, and tells nobody anything. */
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
  chance: 'Take it from the event: event.id is different for each, or put what was drawn into its data.',
}
const before = 'Ask before the command is executed, and let the decision be made with the answer.'
const handedIn =
  'Let it be among what the handler is given (dependencies, or outside.reach(…) in a simulation): then a test can stand for it.'

const hintOf: Record<Kind, Record<Who, string>> = {
  time: { fold: fromEvent.time, decision: before, handler: fromEvent.time },
  chance: { fold: fromEvent.chance, decision: before, handler: fromEvent.chance },
  wait: { fold: 'Nothing is waited for here: do it in a handler.', decision: before, handler: handedIn },
  reach: {
    fold: 'Others are asked in a handler, and what they say is put into an event.',
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
  // The engine itself, on the way from the user's code to the user's code.
  if (originOf(first) === 'holdfast') return
  // What Node does for a call that was seen itself, such as fetch.
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

/** Gives what puts everything back. */
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

/** Where the member lives: `crypto.randomUUID` is one of its prototype. */
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

/** Only that which asks for the time of day: the rest of `Date` is a calendar. */
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
    // Whoever has put something else there since then, such as fake timers, will put it back themselves.
    if (Reflect.get(owner, name) === value) Object.defineProperty(owner, name, found)
  }
}

function listen(channel: string, call: string): () => void {
  const hear = () => notice(call, hear)
  subscribe(channel, hear)
  return () => void unsubscribe(channel, hear)
}

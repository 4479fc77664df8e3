import { redact } from '../../dead-letter/redact.ts'
import type { Logger } from '../../engine/events.ts'
import { toTold } from '../errors.ts'
import type { Io } from '../io.ts'
import { jsonText } from './escape.ts'
import type { Output } from './output.ts'
import { dim, red, type Text, yellow } from './style.ts'

/** The engine's lines, on stderr. What an event has in it stays out: of what failed they say which error it was, and redact the rest. */
export function lineLogger(out: Output, io: Io): Logger {
  const line = (level: 'info' | 'warn' | 'error') => (fields: object, message: string) => {
    const told = Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, shown(name, value)] as const)
    const time = new Date().toISOString()
    if (out.isJson) {
      io.stderr.write(`${jsonText({ time, level, message, ...Object.fromEntries(told) })}\n`)
      return
    }
    const paint = { info: dim, warn: yellow, error: red }[level]
    const rest = told.map(([name, value]): Text => ['  ', dim(`${name}=`), value])
    out.talk(dim(time), ' ', paint(level), ' ', message, rest)
  }
  return { info: line('info'), warn: line('warn'), error: line('error') }
}

function shown(name: string, value: unknown): string {
  if (value instanceof Error) {
    const { code, message } = toTold(value)
    // Ours say nothing of an event's data; those of others may.
    return code === 'FAILED' ? `${value.name}: ${redact(value.message)}` : `${code}: ${message}`
  }
  // The message of a failure is about an event, and nobody here has that at hand to tell its values from words.
  if (typeof value === 'string') return name === 'error' ? '*** (holdfast dlq show has more)' : value
  return typeof value === 'object' && value !== null ? jsonText(redactDeep(value)) : String(value)
}

function redactDeep(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'string' ? redact(inner) : inner)))
}

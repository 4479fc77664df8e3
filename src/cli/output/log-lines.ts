import type { Logger } from '../../engine/events.ts'
import { field } from '../../failure/peek.ts'
import { toTold } from '../errors.ts'
import type { Io } from '../io.ts'
import { jsonText, withoutSecrets } from './escape.ts'
import type { Output } from './output.ts'
import { dim, red, type Text, yellow } from './style.ts'

/** Prints the engine's log lines on stderr. The engine has already redacted the values of events. */
export function lineLogger(out: Output, io: Io): Logger {
  const line = (level: 'info' | 'warn' | 'error') => (fields: object, message: string) => {
    const told = Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, shown(value)] as const)
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

function shown(value: unknown): string {
  if (value instanceof Error) {
    const { code, message } = toTold(value)
    if (code !== 'FAILED') return `${code}: ${message}`
    const own = field(value, 'code')
    return typeof own === 'string' ? message.replace(': ', ` ${own}: `) : message
  }
  if (typeof value === 'string') return withoutSecrets(value)
  return typeof value === 'object' && value !== null ? withoutSecrets(jsonText(value)) : String(value)
}

import { shapeOf } from '../dead-letter/shape.ts'
import { parseBody } from '../event/event.ts'
import { type ActFlags, reasonFlag, reasonOf } from './act.ts'
import type { Context } from './context.ts'
import type { Output } from './output/output.ts'
import { dim, type Text } from './output/style.ts'

/** Payloads are private: without `reveal` a command shows their shape, not their values. */
export interface RevealFlags extends ActFlags {
  readonly reveal?: boolean
}

/** Records in the audit who reads payloads and why. Does nothing without `--reveal`. */
export type RecordReveal = (target: string) => Promise<void>

/**
 * Asks for the reason first. The command calls the returned function after it has found the data and before it shows any of it, so a
 * request for data that does not exist leaves no audit entry.
 */
export async function prepareReveal(ctx: Context, flags: RevealFlags): Promise<RecordReveal> {
  if (!flags.reveal) return async () => undefined
  const reason = await reasonOf(ctx, flags)
  const by = await ctx.user()
  return async (target) => {
    const { audit } = await ctx.store()
    await audit.record({ by, act: 'reveal', target, reason, at: ctx.clock.now(), details: {} })
  }
}

/** The hint that shows how to reveal the values. */
export function revealHint(out: Output, command: string): Text {
  return dim(`Values are private. To see them: ${out.hint(command)} --reveal ${reasonFlag}`)
}

export type ShownData = { readonly data: unknown } | { readonly shape: unknown } | { readonly problem: string }

/** The data of an event if revealed, else its shape. Messages about invalid JSON are our own and contain no values. */
export function shownBody(body: string | Uint8Array, isRevealed: boolean): ShownData {
  try {
    const data = parseBody(body)
    return isRevealed ? { data } : { shape: shapeOf(data) }
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it cannot be read'
    return isRevealed ? { data: body } : { problem: why }
  }
}

/** The data in one line. */
export function lineOf(shown: ShownData): string {
  if ('problem' in shown) return shown.problem
  return 'data' in shown ? textOf(shown.data) : shapeText(shown.shape)
}

function textOf(data: unknown): string {
  if (data instanceof Uint8Array) return `base64 ${Buffer.from(data).toString('base64')}`
  return typeof data === 'string' ? data : JSON.stringify(data)
}

/** `{ amount: number, lines: [string] }`, without the quotes of JSON. */
export function shapeText(shape: unknown): string {
  if (Array.isArray(shape)) return `[${shape.map(shapeText).join(' | ')}]`
  if (typeof shape !== 'object' || shape === null) return String(shape)
  const fields = Object.entries(shape).map(([key, value]) => `${key}: ${shapeText(value)}`)
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}

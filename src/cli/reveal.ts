import { redact } from '../dead-letter/redact.ts'
import { shapeOf } from '../dead-letter/shape.ts'
import { parseBody } from '../event/event.ts'
import { type ActFlags, reasonOf } from './act.ts'
import type { Context } from './context.ts'

/** Payloads are private: without it a command shows what they look like, and not what is in them. */
export interface RevealFlags extends ActFlags {
  readonly reveal?: boolean
}

/** Writes down who looks at payloads, and why. Nothing where nobody wants to. */
export type RecordReveal = (target: string) => Promise<void>

/**
 * Asks first why anybody looks. What it gives is called when it is known that there is something to see, and before anything of it is
 * shown: who asks for what isn't there has seen nothing, and leaves nothing in the audit.
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

export type ShownData = { readonly data: unknown } | { readonly shape: unknown } | { readonly problem: string }

/** The data of an event: whole where it may be seen, else its shape. What is no JSON is told as such. */
export function shownBody(body: string | Uint8Array, isRevealed: boolean): ShownData {
  try {
    const data = parseBody(body)
    return isRevealed ? { data } : { shape: shapeOf(data) }
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it can not be read'
    return isRevealed ? { data: body } : { problem: redact(why) }
  }
}

/** In one line. */
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

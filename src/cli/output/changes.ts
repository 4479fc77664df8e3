import { shapeOf, shapePath } from '../../dead-letter/shape.ts'
import { diffJson, type JsonChange } from '../../event/diff.ts'
import { shapeText } from '../reveal.ts'
import { dim, green, red, type Text, yellow } from './style.ts'
import { many } from './words.ts'

/** One side of a difference: the value if revealed, else its type and length. */
export type ShownValue =
  | { readonly value: unknown }
  | { readonly type: 'string' | 'array'; readonly length: number }
  | { readonly type: 'object'; readonly shape: unknown }
  | { readonly type: string }

export interface ShownChange {
  readonly change: JsonChange['change']
  readonly path: string
  /** Null if the value is absent on this side. */
  readonly before: ShownValue | null
  readonly after: ShownValue | null
}

/** The differences between two values. It does not say by how much a number changed: that and one side would reveal the other. */
export function shownChanges(before: unknown, after: unknown, isRevealed: boolean): ShownChange[] {
  return diffJson(plainJson(before), plainJson(after)).map((change) => shownChange(change, isRevealed))
}

export function shownChange(change: JsonChange, isRevealed: boolean): ShownChange {
  return {
    change: change.change,
    path: isRevealed ? change.path : shapePath(change.path),
    before: change.change === 'added' ? null : shownValue(change.before, isRevealed),
    after: change.change === 'removed' ? null : shownValue(change.after, isRevealed),
  }
}

function shownValue(value: unknown, isRevealed: boolean): ShownValue {
  if (isRevealed) return { value }
  if (typeof value === 'string') return { type: 'string', length: value.length }
  if (Array.isArray(value)) return { type: 'array', length: value.length }
  if (typeof value === 'object' && value !== null) return { type: 'object', shape: shapeOf(value) }
  return { type: value === null ? 'null' : typeof value }
}

/** `~ lines[3].name: text of 12 characters → text of 9 characters` */
export function changeLine({ change, path, before, after }: ShownChange): Text {
  const where = path === '' ? 'the whole' : path
  if (change === 'added') return [green('+ '), where, dim(`: ${valueText(after)}`)]
  if (change === 'removed') return [red('- '), where, dim(`: ${valueText(before)}`)]
  const [from, to] = [valueText(before), valueText(after)]
  return [yellow('~ '), where, dim(from === to ? `: ${from}, changed` : `: ${from} → ${to}`)]
}

function valueText(shown: ShownValue | null): string {
  if (shown === null) return 'none'
  if ('value' in shown) return JSON.stringify(shown.value)
  if ('shape' in shown) return shapeText(shown.shape)
  if (!('length' in shown)) return shown.type
  return shown.type === 'string'
    ? `text of ${many(shown.length, 'character')}`
    : `list of ${many(shown.length, 'item')}`
}

/** Database rows may contain bigints, which JSON cannot represent. */
function plainJson(value: unknown): unknown {
  if (value === undefined) return undefined
  return JSON.parse(
    JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'bigint' ? String(inner) : inner)),
  ) as unknown
}

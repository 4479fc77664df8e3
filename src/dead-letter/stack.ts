import type { Failure } from '../failure/failure.ts'

/** A frame of the user's code, or a folded group of consecutive frames of Holdfast, Node.js or a library. */
export type StackLine =
  | { readonly kind: 'frame'; readonly text: string }
  | { readonly kind: 'folded'; readonly of: 'holdfast' | 'node' | 'library'; readonly frames: readonly string[] }

export type StackFrames = readonly StackLine[]

/** The location of this package as it appears in a stack: as a URL or as a path. */
const own = new URL('..', import.meta.url)
const ownPlaces = [own.href, decodeURI(own.pathname)]

/**
 * The frames of a failure's stack, without the message. A message can contain payload values and lines that look like frames, so if its end is
 * not known, no frames are returned.
 */
export function framesOf({ stack, message }: Pick<Failure, 'stack' | 'message'>): readonly string[] {
  if (stack === null) return []
  const begin = stack.indexOf(message)
  // The end of a truncated message is not known. A stack without the message was not created by V8.
  if (begin < 0 || message.endsWith('…')) return []
  const lines = stack.slice(begin + message.length).split('\n')
  return lines.map((line) => line.trim()).filter((line) => line.startsWith('at '))
}

export function foldStack(failure: Pick<Failure, 'stack' | 'message'>): StackFrames {
  const lines: StackLine[] = []
  for (const frame of framesOf(failure)) {
    const of = originOf(frame)
    const last = lines.at(-1)
    if (of === undefined) lines.push({ kind: 'frame', text: frame })
    else if (last?.kind === 'folded' && last.of === of)
      lines[lines.length - 1] = { ...last, frames: [...last.frames, frame] }
    else lines.push({ kind: 'folded', of, frames: [frame] })
  }
  return lines
}

/** The origin of a frame. Undefined for the user's own code. */
export function originOf(frame: string): 'holdfast' | 'node' | 'library' | undefined {
  if (frame.includes('node_modules/holdfast/') || ownPlaces.some((place) => frame.includes(place))) return 'holdfast'
  if (frame.includes('node_modules/')) return 'library'
  return /\bnode:|<anonymous>\)?$/.test(frame) ? 'node' : undefined
}

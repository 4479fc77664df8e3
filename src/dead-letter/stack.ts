import type { Failure } from '../failure/failure.ts'

/** A frame of a stack, or several of ours, of Node's or of a library's in a row, which say little to whoever looks for a bug of their own. */
export type StackLine =
  | { readonly kind: 'frame'; readonly text: string }
  | { readonly kind: 'folded'; readonly of: 'holdfast' | 'node' | 'library'; readonly frames: readonly string[] }

export type StackFrames = readonly StackLine[]

/** Of this copy of the package, as a stack has it: as an address, or as a path. */
const own = new URL('..', import.meta.url)
const ownPlaces = [own.href, decodeURI(own.pathname)]

/**
 * The frames of a failure's stack, without the message that stands before them. A message has values in it, and may have lines that look
 * like frames; so where it can't be told where it ends, there are no frames.
 */
export function framesOf({ stack, message }: Pick<Failure, 'stack' | 'message'>): readonly string[] {
  if (stack === null) return []
  const begin = stack.indexOf(message)
  // What was cut has an end that is not known. Without the message in it, a stack is not one that V8 made.
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

/** Whose code a frame is in. Undefined for the user's own. */
export function originOf(frame: string): 'holdfast' | 'node' | 'library' | undefined {
  if (frame.includes('node_modules/holdfast/') || ownPlaces.some((place) => frame.includes(place))) return 'holdfast'
  if (frame.includes('node_modules/')) return 'library'
  return /\bnode:|<anonymous>\)?$/.test(frame) ? 'node' : undefined
}

/** A frame of a stack, or several of ours, of Node's or of a library's in a row, which say little to whoever looks for a bug of their own. */
export type StackLine =
  | { readonly kind: 'frame'; readonly text: string }
  | { readonly kind: 'folded'; readonly of: 'holdfast' | 'node' | 'library'; readonly frames: readonly string[] }

export type StackFrames = readonly StackLine[]

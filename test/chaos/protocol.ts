/** One message of PostgreSQL's protocol: its type letter, or what it opens a connection with, and all of its bytes. */
export interface Frame {
  readonly type: string
  readonly bytes: Buffer
}

const openings = new Map([
  [80_877_102, 'cancel'],
  [80_877_103, 'encryption'],
  [80_877_104, 'encryption'],
])

/** Cuts what one side sends into messages, however the network has cut it into chunks. */
export function createFrameReader(side: 'frontend' | 'backend'): (chunk: Buffer) => Frame[] {
  let chunks: Buffer[] = []
  let length = 0
  // Below this many bytes there is no use in looking: putting a big message together once per chunk would take seconds.
  let needed = 0
  // Only what a client says first has no letter: it may ask for encryption, and then it introduces itself.
  let hasLetter = side === 'backend'

  return (chunk) => {
    chunks.push(chunk)
    length += chunk.length
    if (length < needed) return []
    let rest = Buffer.concat(chunks)
    const frames: Frame[] = []
    for (;;) {
      const head = hasLetter ? 5 : 8
      needed = rest.length < head ? head : rest.readInt32BE(hasLetter ? 1 : 0) + (hasLetter ? 1 : 0)
      if (rest.length < needed) break
      const bytes = rest.subarray(0, needed)
      const type = hasLetter ? String.fromCharCode(bytes[0] as number) : openingOf(bytes)
      hasLetter ||= type === 'startup'
      frames.push({ type, bytes })
      rest = rest.subarray(needed)
    }
    chunks = [rest]
    length = rest.length
    return frames
  }
}

function openingOf(bytes: Buffer): string {
  return openings.get(bytes.readInt32BE(4)) ?? 'startup'
}

/** The SQL that a message makes the server run, as far as it does: a Parse alone runs nothing, its Bind does. */
export function createSqlReader(): (frame: Frame) => string | undefined {
  const statements = new Map<string, string>()
  return ({ type, bytes }) => {
    // What follows the letter and the length, up to the second zero: the two strings that Parse and Bind begin with.
    const [first = '', second = ''] = type === 'Q' || type === 'P' || type === 'B' ? strings(bytes.subarray(5)) : []
    if (type === 'Q') return first
    if (type === 'P') statements.set(first, second)
    return type === 'B' ? statements.get(second) : undefined
  }
}

function strings(bytes: Buffer): [string, string] {
  const firstEnd = bytes.indexOf(0)
  const secondEnd = bytes.indexOf(0, firstEnd + 1)
  return [bytes.toString('utf8', 0, firstEnd), bytes.toString('utf8', firstEnd + 1, Math.max(secondEnd, firstEnd + 1))]
}

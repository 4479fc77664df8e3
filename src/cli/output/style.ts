import { plain } from './escape.ts'

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const

export type Style = keyof typeof codes

/** A line in parts. Only `render` makes a string of it that a terminal gets, so no part can bring its own colours or breaks. */
export type Text = string | number | Span | readonly Text[]

export interface Span {
  readonly style: Style
  readonly text: Text
}

const styled = (style: Style) => (text: Text) => ({ style, text }) satisfies Span

export const bold = styled('bold')
export const dim = styled('dim')
export const red = styled('red')
export const green = styled('green')
export const yellow = styled('yellow')
export const cyan = styled('cyan')

/** The door: every text that is shown to a person goes through here. */
export function render(text: Text, hasColour: boolean): string {
  if (typeof text === 'string') return plain(text)
  if (typeof text === 'number') return String(text)
  if (!isSpan(text)) return text.map((part) => render(part, hasColour)).join('')
  const inner = render(text.text, hasColour)
  return hasColour && inner !== '' ? `\u001b[${codes[text.style]}m${inner}\u001b[0m` : inner
}

export function widthOf(text: Text): number {
  let width = 0
  for (const char of render(text, false)) width += charWidth(char.codePointAt(0) as number)
  return width
}

/** At most so wide, and from the end of it what was left out is marked. Loses its colours if it is cut. */
export function fit(text: Text, width: number): Text {
  if (widthOf(text) <= width) return text
  let out = ''
  let used = 0
  for (const char of render(text, false)) {
    used += charWidth(char.codePointAt(0) as number)
    if (used > width - 1) break
    out += char
  }
  return `${out}…`
}

function isSpan(text: Span | readonly Text[]): text is Span {
  return 'style' in text
}

const combining = /^\p{M}$/u

/** Near enough for a table: East Asian characters and emoji are two wide, marks have no width of their own. */
function charWidth(code: number): 0 | 1 | 2 {
  if (code < 0x300) return 1
  if (combining.test(String.fromCodePoint(code))) return 0
  const isWide =
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0xffe0 && code <= 0xffe6) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd)
  return isWide ? 2 : 1
}

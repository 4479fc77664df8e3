import { plain } from './escape.ts'

const codes = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const

export type Style = keyof typeof codes

/** A line in parts. Only `render` turns it into terminal output, so no part can contain its own colours or line breaks. */
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

/** Converts text to terminal output. All text that the CLI shows goes through here. */
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

/** Cuts a text to a width and marks the cut with `…`. A cut text loses its colours. */
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

/** Approximate: East Asian characters and emoji are two columns wide, combining marks zero. */
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

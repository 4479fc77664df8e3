/**
 * What a terminal could take for a command, or what makes a line read otherwise than it is: control characters, invisible format
 * characters (among them all that turn the direction of writing), half characters, private ones, and breaks of lines that are none
 * of ours. Tested one character at a time, so it is linear.
 */
const unsafe = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu

const named: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Stored text as it may be shown: what is unsafe is spelled out. The one door to a terminal is `render`, which calls it. */
export function plain(text: string): string {
  return text.replaceAll(unsafe, (char) => {
    const code = char.codePointAt(0) as number
    const hex = code.toString(16)
    return named[char] ?? (code < 0x100 ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`)
  })
}

/** One JSON document in one line. */
export function jsonText(value: unknown): string {
  return harmlessJson(
    JSON.stringify(value, (_, inner: unknown) => (inner instanceof Uint8Array ? base64(inner) : inner)),
  )
}

/** JSON in one line means the same with everything unsafe as an escape, which JSON.stringify does for some only. */
export function harmlessJson(line: string): string {
  return line.replaceAll(unsafe, (char) =>
    Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  )
}

function base64(bytes: Uint8Array): { readonly base64: string } {
  return { base64: Buffer.from(bytes).toString('base64') }
}

/** An address without its password, wherever it stands in a text. */
export function withoutSecrets(text: string): string {
  return text
    .slice(0, 10_000)
    .replaceAll(/(\b[a-z]{1,20}:\/\/[^\s:/@]{0,200}):[^\s@/]{1,500}@/gi, '$1:***@')
    .replaceAll(/([?&][a-z]{0,10}password=)[^\s&]{1,500}/gi, '$1***')
}

/**
 * Characters that a terminal may interpret, or that change how a line reads: control characters, invisible format characters
 * (including all that change the writing direction), lone surrogates, private-use characters and line breaks. The pattern matches one
 * character at a time, so it runs in linear time.
 */
const unsafe = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu

const named: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Escapes unsafe characters of stored text. `render` calls it for all text that goes to a terminal. */
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

/** Escapes unsafe characters in one line of JSON without changing its meaning. JSON.stringify escapes only some of them. */
export function harmlessJson(line: string): string {
  return line.replaceAll(unsafe, (char) =>
    Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  )
}

function base64(bytes: Uint8Array): { readonly base64: string } {
  return { base64: Buffer.from(bytes).toString('base64') }
}

/** Hides the passwords of all addresses in a text. */
export function withoutSecrets(text: string): string {
  return text
    .slice(0, 10_000)
    .replaceAll(/(\b[a-z]{1,20}:\/\/[^\s:/@]{0,200}):[^\s@/]{1,500}@/gi, '$1:***@')
    .replaceAll(/([?&][a-z]{0,10}password=)[^\s&]{1,500}/gi, '$1***')
}

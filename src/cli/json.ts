import type { ErrorCode } from '../errors.ts'
import { parseJson } from '../event/parse.ts'
import { type CommandCode, CommandError } from './errors.ts'

/** Checks that a text is JSON and returns it unchanged, so numbers above 2^53 keep their digits. The error does not quote the payload. */
export function checkJson(
  text: string,
  what: string,
  code: CommandCode | ErrorCode = 'USAGE',
  hint = 'Put the JSON in single quotes for the shell, or read it from a file.',
): string {
  try {
    parseJson(text)
    return text
  } catch (cause) {
    throw new CommandError(code, `${what} is not valid JSON.`, hint, { cause })
  }
}

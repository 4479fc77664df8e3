import type { ErrorCode } from '../errors.ts'
import { parseJson } from '../event/parse.ts'
import { type CommandCode, CommandError } from './errors.ts'

/** JSON as it was given, to the letter: numbers beyond 2^53 too. What it is of the payload is not told. */
export function checkJson(text: string, option: string, code: CommandCode | ErrorCode = 'USAGE'): string {
  try {
    parseJson(text)
    return text
  } catch (cause) {
    const hint = 'Mind the quotes of your shell: put it in single ones, or use a file.'
    throw new CommandError(code, `${option} is no JSON.`, hint, { cause })
  }
}

import type { Command, Option } from 'commander'
import { withoutSecrets } from './output/escape.ts'
import { shellWord } from './output/words.ts'

/** `Output.hint` adds them to every command of a hint. */
export const globalOptions: ReadonlySet<string> = new Set(['--config', '--store', '--schema'])

/** Their values are payloads. */
const ofPayload: ReadonlySet<string> = new Set(['--data', '--metadata'])

/** What a dry run has and the command that follows it has not, or has with another value. */
const ofDryRun = new Set(['--dry-run', '--reveal', '--json', '--limit', '--expect', '--reason', '--whole'])

/**
 * The command line as it was typed, without some options (default: those of a dry run) and with others, for a shell. Parsed values would
 * not do: `--since 2h` is a time by then.
 */
export function typedAgain(
  command: Command,
  args: readonly string[],
  more: string,
  without: ReadonlySet<string> = ofDryRun,
): string {
  const options = allOptions(command)
  const words: string[] = []
  let i = 0
  for (; i < args.length && args[i] !== '--'; i++) {
    const [arg = '', next] = [args[i], args[i + 1]]
    const [name = '', inline] = arg.startsWith('--') ? arg.split(/=(.*)/s) : [arg]
    const option = arg.startsWith('-') ? options.find(({ long, short }) => long === name || short === name) : undefined
    const hasValue =
      option !== undefined &&
      inline === undefined &&
      next !== undefined &&
      (option.required || (option.optional && !next.startsWith('-')))
    if (hasValue) i++
    const long = option?.long ?? ''
    if (without.has(long)) continue
    if (ofPayload.has(long)) words.push(long, '…')
    else words.push(arg, ...(hasValue ? [next] : []))
  }
  const typed = (list: readonly string[]) => list.map((word) => shellWord(withoutSecrets(word)))
  return ['holdfast', ...typed(words), more, ...typed(args.slice(i))].join(' ')
}

function allOptions(command: Command): readonly Option[] {
  return command.parent ? [...command.options, ...allOptions(command.parent)] : command.options
}

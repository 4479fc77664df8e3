import { Argument, type Command } from 'commander'
import { action, type Perform } from '../command.ts'

export function addCompletion(program: Command, perform: Perform): void {
  const command = program
    .command('completion')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .description('print a script that completes commands and options in your shell')
    .addHelpText(
      'after',
      `
  bash   eval "$(holdfast completion bash)"       in ~/.bashrc
  zsh    eval "$(holdfast completion zsh)"        in ~/.zshrc, after compinit
  fish   holdfast completion fish | source        in ~/.config/fish/config.fish`,
    )
  action(command, perform, async (_ctx, [shell = '']) => {
    const places = [...walk(program, [])]
    const script = shell === 'fish' ? fish(places) : shell === 'zsh' ? `${zshPrelude}${bash(places)}` : bash(places)
    return { json: { shell, script }, show: (out) => script.split('\n').forEach((line) => out.data(line)) }
  })
}

/** A command and its possible next words. */
interface Place {
  readonly path: readonly string[]
  readonly commands: readonly { readonly name: string; readonly about: string }[]
  readonly options: readonly string[]
}

function* walk(command: Command, path: readonly string[]): Generator<Place> {
  const commands = command.commands.map((each) => ({ name: each.name(), about: each.description() }))
  const own = command.options.map(({ long }) => long ?? '').filter((long) => long !== '')
  yield { path, commands, options: [...own, '--help'] }
  for (const each of command.commands) yield* walk(each, [...path, each.name()])
}

const zshPrelude = 'autoload -U +X bashcompinit && bashcompinit\n'

/** Our command and option names are letters and hyphens, so they need no quotes. */
function bash(places: readonly Place[]): string {
  const [root] = places
  const globals = root?.options.join(' ') ?? ''
  const known = places.filter(({ path }) => path.length > 0).map(({ path }) => `"/${path.join('/')}"`)
  const cases = places.map(({ path, commands, options }) => {
    const words = [...commands.map(({ name }) => name), ...(path.length === 0 ? [] : options)].join(' ')
    return `    "${path.map((word) => `/${word}`).join('')}") words="${words} ${globals}" ;;`
  })
  return `_holdfast() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" words="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path/$word" in
      ${known.join('|')}) path="$path/$word" ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _holdfast holdfast`
}

function fish(places: readonly Place[]): string {
  const lines: string[] = []
  for (const { path, commands, options } of places) {
    const names = commands.map(({ name }) => name).join(' ')
    const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`).join('; and ')
    const here =
      path.length === 0
        ? '__fish_use_subcommand'
        : names === ''
          ? seen
          : `${seen}; and not __fish_seen_subcommand_from ${names}`
    for (const { name, about } of commands)
      lines.push(`complete -c holdfast -f -n '${here}' -a ${name} -d '${about.replaceAll("'", '’')}'`)
    const where = path.length === 0 ? '' : ` -n '${seen}'`
    for (const option of options) lines.push(`complete -c holdfast${where} -l ${option.slice(2)}`)
  }
  return lines.join('\n')
}

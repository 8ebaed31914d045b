import { type ArgumentModel, type CommandModel, everyCommand, type OptionModel } from '../command-model.ts'
import type { CommandLine } from './command-lines.ts'

/*
 * Completion scripts for bash, zsh and fish, generated from the command definitions. They complete
 * commands, options, choices, files and directories, and need only the shell.
 */

/** A single-quoted word of a POSIX shell, which bash and zsh share. */
function quoted(plain: string): string {
  return `'${plain.replaceAll("'", "'\\''")}'`
}

/** The subcommands: `key create`; '' for the program itself. */
function pathOf({ path }: CommandModel): string {
  return path.slice(1).join(' ')
}

/** `_posture_admin_key_create`. */
function functionName({ path }: CommandModel): string {
  return `_${path.join('_').replaceAll('-', '_')}`
}

/** The options of a command. A program also accepts those of its default command. */
function optionsOf(command: CommandModel, { model, defaultCommand }: CommandLine): readonly OptionModel[] {
  const byDefault = command === model ? model.commands.find(({ path }) => path.at(-1) === defaultCommand) : undefined
  const own = new Set(command.options.map(({ long }) => long))
  return [...command.options, ...(byDefault?.options ?? []).filter(({ long }) => !own.has(long))]
}

function flagsOf({ short, long }: OptionModel): string[] {
  return short === undefined ? [long] : [short, long]
}

/** For `complete` of bash 4 or later. */
export function bashCompletion(line: CommandLine): string {
  const { model } = line
  const [program = ''] = model.path
  const all = everyCommand(model)
  // Option patterns by the kind of completion of their values.
  const patterns = new Map<string, string[]>()
  for (const command of all) {
    for (const option of optionsOf(command, line).filter(({ value }) => value !== undefined)) {
      const action = bashValue(option)
      const own = flagsOf(option).map((flag) => quoted(`${pathOf(command)} ${flag}`.trim()))
      patterns.set(action, [...(patterns.get(action) ?? []), ...own])
    }
  }
  const values = [...patterns].map(([action, all]) => `    ${all.join(' | \\\n      ')}) ${action}; return ;;`)
  const words = all.map((command) => {
    const choices = command.arguments.flatMap((each) => each.choices)
    const names = [...command.commands.map(({ path }) => path.at(-1) ?? ''), ...choices]
    const files = command.arguments.some(({ kind }) => kind === 'file') ? ' files=yes' : ''
    const flags = optionsOf(command, line).flatMap(flagsOf)
    return `    ${quoted(pathOf(command))}) names=${quoted(names.join(' '))} flags=${quoted(flags.join(' '))}${files} ;;`
  })
  return `# Completion of ${program} for bash. Generated from the command definitions.
${functionName(model)}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]} path= names= flags= files= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${path:+$path }\${COMP_WORDS[i]}" in
    ${
      all
        .slice(1)
        .map((command) => quoted(pathOf(command)))
        .join('|') || "''"
    }) path="\${path:+$path }\${COMP_WORDS[i]}" ;;
    esac
  done
  COMPREPLY=()
  case "\${path:+$path }$before" in
${values.join('\n')}
  esac
  case "$path" in
${words.join('\n')}
  esac
  if [[ $word == -* || -z $names$files ]]; then names=$flags; fi
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
  if [[ -n $files && $word != -* ]]; then
    compopt -o filenames 2> /dev/null
    mapfile -t -O "\${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F ${functionName(model)} ${program}
`
}

function bashValue({ kind, choices }: OptionModel): string {
  if (choices.length > 0) return `mapfile -t COMPREPLY < <(compgen -W ${quoted(choices.join(' '))} -- "$word")`
  if (kind === 'other') return ':'
  return `compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen ${kind === 'file' ? '-f' : '-d'} -- "$word")`
}

/**
 * A function for zsh's completion system (zshcompsys(1)), which finds it by file name in $fpath.
 */
export function zshCompletion(line: CommandLine): string {
  const [program = ''] = line.model.path
  const functions = everyCommand(line.model).map((command) => zshFunction(command, line))
  return `#compdef ${program}
# Completion of ${program} for zsh. Generated from the command definitions.
${functions.join('\n')}
${functionName(line.model)} "$@"
`
}

function zshFunction(command: CommandModel, line: CommandLine): string {
  const specs = [
    ...optionsOf(command, line).map(zshOption),
    ...(command.commands.length > 0 ? ["'1:command:->command'", "'*::argument:->argument'"] : []),
    ...command.arguments.map((each, at) => zshArgument(each, at + 1)),
  ]
  const names = command.commands.map(({ path, about }) => quoted(`${path.at(-1)}:${about.replaceAll(':', '\\:')}`))
  const cases = command.commands.map((each) => `    ${each.path.at(-1)}) ${functionName(each)} ;;`)
  const states =
    command.commands.length === 0
      ? ''
      : `  case $state in
  command)
    local -a commands=(
      ${names.join('\n      ')}
    )
    _describe -t commands command commands
    ;;
  argument)
    case $line[1] in
${cases.join('\n')}
    esac
    ;;
  esac
`
  return `${functionName(command)}() {
  local curcontext=$curcontext state line
  local -A opt_args
  _arguments -C \\
    ${specs.join(' \\\n    ')}
${states}}
`
}

function zshText(plain: string): string {
  return plain.replaceAll(/[[\]:\\]/g, '\\$&')
}

function zshOption(option: OptionModel): string {
  const { long, short, value, variadic, about } = option
  const suffix = value === undefined ? '' : `:${zshText(value.slice(1, -1))}:${zshValues(option)}`
  const repeat = variadic ? '*' : ''
  const flags = flagsOf(option).map((flag) => {
    const equals = value !== undefined && flag.startsWith('--') ? '=' : ''
    return quoted(
      `${repeat || (short === undefined ? '' : `(${short} ${long})`)}${flag}${equals}[${zshText(about)}]${suffix}`,
    )
  })
  return flags.join(' ')
}

function zshArgument(argument: ArgumentModel, at: number): string {
  return quoted(`${argument.variadic ? '*' : at}:${zshText(argument.name)}:${zshValues(argument)}`)
}

function zshValues({ kind, choices }: { readonly kind: string; readonly choices: readonly string[] }): string {
  if (choices.length > 0) return `(${choices.map(zshText).join(' ')})`
  return kind === 'file' ? '_files' : kind === 'directory' ? '_files -/' : ' '
}

/** Calls of `complete` for fish 3 or later. */
export function fishCompletion(line: CommandLine): string {
  const { model } = line
  const [program = ''] = model.path
  const all = everyCommand(model)
  const name = `_${functionName(model)}`
  const known = all.slice(1).map((command) => fishQuoted(pathOf(command)))
  const calls = all.flatMap((command) => {
    const at = `complete -c ${program} -n ${fishQuoted(`${name}_at ${pathOf(command)}`.trim())}`
    return [
      ...command.commands.map(({ path, about }) => `${at} -a ${path.at(-1)} -d ${fishQuoted(about)}`),
      ...command.arguments.flatMap(({ kind, choices }) => [
        ...(kind === 'file' ? [`${at} -F`] : []),
        ...(choices.length > 0 ? [`${at} -a ${fishQuoted(choices.join(' '))}`] : []),
      ]),
      ...optionsOf(command, line).map((option) => `${at} ${fishOption(option)}`),
    ]
  })
  return `# Completion of ${program} for fish. Generated from the command definitions.
function ${name}_at
    set -l path
    for word in (commandline -opc)[2..-1]
        if contains -- (string join -- ' ' $path $word) ${known.join(' ')}
            set -a path $word
        end
    end
    test "$path" = "$argv"
end
complete -c ${program} -f
${calls.join('\n')}
`
}

function fishQuoted(plain: string): string {
  return `'${plain.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}

function fishOption({ long, short, value, kind, choices, about }: OptionModel): string {
  const flags = `${short === undefined ? '' : `-s ${short.slice(1)} `}-l ${long.slice(2)}`
  return `${flags}${fishValue(value, kind, choices)} -d ${fishQuoted(about)}`
}

function fishValue(value: string | undefined, kind: string, choices: readonly string[]): string {
  if (value === undefined) return ''
  if (choices.length > 0) return ` -x -a ${fishQuoted(choices.join(' '))}`
  if (kind === 'file') return ' -r -F'
  return kind === 'directory' ? " -x -a '(__fish_complete_directories)'" : ' -x'
}

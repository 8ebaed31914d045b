import type { Argument, Command, Option } from 'commander'
import { choicesOf, SettingArgument, SettingOption, shownDefault } from '../engine/kernel/process/settings.ts'

/** What the value of an option or argument names, for shell completion. */
export type ValueKind = 'file' | 'directory' | 'other'

export interface ArgumentModel {
  /** In usage notation: `<file...>`. */
  readonly term: string
  readonly name: string
  readonly about: string
  readonly variadic: boolean
  readonly kind: ValueKind
  readonly choices: readonly string[]
}

export interface OptionModel {
  /** `--scope`. */
  readonly long: string
  /** `-h`, or undefined. */
  readonly short: string | undefined
  /** `<scope...>`, or undefined for a switch. */
  readonly value: string | undefined
  readonly kind: ValueKind
  readonly about: string
  readonly required: boolean
  readonly variadic: boolean
  readonly choices: readonly string[]
  readonly env: string | undefined
  /** The default as shown to people. */
  readonly byDefault: string | undefined
}

/** A command as data, for generating manual pages, completion scripts and reference pages. */
export interface CommandModel {
  /** `['posture-admin', 'key', 'create']`. */
  readonly path: readonly string[]
  readonly about: string
  readonly arguments: readonly ArgumentModel[]
  /** Includes `--help` and, for the program itself, `--version`. */
  readonly options: readonly OptionModel[]
  readonly commands: readonly CommandModel[]
}

export function commandModel(command: Command, parents: readonly string[] = []): CommandModel {
  const path = [...parents, command.name()]
  const helper = command.createHelp()
  return {
    path,
    about: command.description(),
    arguments: command.registeredArguments.map(argumentModel),
    options: helper.visibleOptions(command).map(optionModel),
    commands: command.commands.map((each) => commandModel(each, path)),
  }
}

/** The command and all its subcommands, parents first. */
export function everyCommand(model: CommandModel): readonly CommandModel[] {
  return [model, ...model.commands.flatMap(everyCommand)]
}

/** `posture-admin key create [options] <label>`, without `[options]` if --help is the only one. */
export function usageOf({ path, arguments: args, options, commands }: CommandModel): string {
  const words = [...(options.length > 1 ? ['[options]'] : []), ...(commands.length > 0 ? ['<command>'] : [])]
  return [...path, ...words, ...args.map(({ term }) => term)].join(' ')
}

function argumentModel(argument: Argument): ArgumentModel {
  const name = argument.name()
  const row = argument instanceof SettingArgument ? argument.setting : undefined
  return {
    term: argument.variadic ? `<${name}...>` : `<${name}>`,
    name,
    about: row?.about ?? argument.description,
    variadic: argument.variadic,
    kind: kindOf(name),
    choices: row === undefined ? [] : choicesOf(row.schema),
  }
}

function optionModel(option: Option): OptionModel {
  const value = /<[^>]+>/.exec(option.flags)?.[0]
  const row = option instanceof SettingOption ? option.setting : undefined
  return {
    long: option.long ?? '',
    short: option.short,
    value,
    kind: kindOf(value?.slice(1, -1) ?? ''),
    about: row?.about ?? option.description,
    required: option.mandatory,
    variadic: option.variadic,
    choices: row === undefined ? [] : choicesOf(row.schema),
    env: row?.env,
    byDefault: row === undefined ? defaultOf(option) : shownDefault(row),
  }
}

function defaultOf({ defaultValue, defaultValueDescription }: Option): string | undefined {
  return defaultValueDescription ?? (defaultValue === undefined ? undefined : String(defaultValue))
}

function kindOf(name: string): ValueKind {
  return name.startsWith('file') ? 'file' : name.startsWith('directory') ? 'directory' : 'other'
}

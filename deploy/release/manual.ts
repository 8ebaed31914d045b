import { ExitStatus } from '../../engine/kernel/process/error-codes.ts'
import { type CommandModel, everyCommand, type OptionModel, usageOf } from '../command-model.ts'
import type { CommandLine } from './command-lines.ts'

/*
 * Manual pages in roff's man macros (man-pages(7), groff_man(7)), generated from the command
 * definitions.
 */

const EXIT_STATUS: Readonly<Record<keyof typeof ExitStatus, string>> = {
  success: 'Success',
  internal: 'Internal error; please report it',
  usage: 'Wrong usage: the command line or a setting is wrong',
  damagedInput: 'Damaged input; everything before the damage was used',
  unavailable: 'Something that the command needs is not available',
  refused: 'The request was refused',
}

/** Signals that end a program before its work is done: 128 + signal number. */
const SIGNAL_STATUS = 'SIGINT (130) or SIGTERM (143) ended the command before its work was done'

/** @param dateMs the date of the page, in milliseconds since 1970 */
export function manualPage(line: CommandLine, version: string, dateMs: number): string {
  const { model, section, files, seeAlso } = line
  const [name = ''] = model.path
  const date = new Date(dateMs).toISOString().slice(0, 10)
  const commands = everyCommand(model).filter(({ commands }) => commands.length === 0)
  const sections = [
    ['NAME', [text(`${name} - ${decapitalized(model.about)}`)]],
    ['SYNOPSIS', synopsis(line)],
    ['DESCRIPTION', [sentence(model.about), ...describeDefault(line)]],
    ['OPTIONS', optionsOf(model)],
    ['COMMANDS', model.commands.length === 0 ? [] : commands.flatMap(commandSection)],
    ['ENVIRONMENT', environment(model)],
    ['FILES', files.flatMap(({ path, about }) => tagged(`.I ${text(path)}`, about))],
    ['EXIT STATUS', exitStatuses()],
    ['SEE ALSO', [references(seeAlso)]],
  ] as const
  return [
    `.TH ${quoted(name.toUpperCase())} ${section} "${date}" ${quoted(`${name} ${version}`)} "Security Posture Service"`,
    ...sections.flatMap(([title, lines]) => (lines.length === 0 ? [] : [`.SH ${title}`, ...lines])),
    '',
  ].join('\n')
}

/**
 * Escapes text: a backslash begins an escape, `\-` is a literal hyphen, and a leading dot would
 * begin a request.
 */
function text(plain: string): string {
  const escaped = plain.replaceAll('\\', '\\e').replaceAll('-', '\\-')
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped
}

/** Quotes an argument of a request. */
function quoted(plain: string): string {
  return `"${text(plain).replaceAll('"', '\\(dq')}"`
}

function sentence(about: string): string {
  return text(`${about}.`)
}

function decapitalized(about: string): string {
  return about.charAt(0).toLowerCase() + about.slice(1)
}

function tagged(tag: string, about: string): string[] {
  return ['.TP', tag, sentence(about)]
}

function synopsis({ model, defaultCommand }: CommandLine): string[] {
  const usages = [
    ...(model.commands.length === 0 || defaultCommand !== undefined ? [`${model.path[0]} [options]`] : []),
    ...(model.commands.length === 0 ? [] : [`${model.path[0]} <command> [options]`]),
  ]
  return usages.flatMap((usage, index) => [...(index === 0 ? [] : ['.br']), usageLine(usage)])
}

/** A usage line: literal words in bold, placeholders in italics. */
function usageLine(usage: string): string {
  const words = usage.split(' ').map((word) => {
    if (word.startsWith('<')) return `\\fI${text(word.slice(1, -1))}\\fR`
    return word.startsWith('[') ? text(word) : `\\fB${text(word)}\\fR`
  })
  return words.join(' ')
}

function describeDefault({ model, defaultCommand }: CommandLine): string[] {
  if (defaultCommand === undefined) return []
  return [
    `The command \\fB${text(defaultCommand)}\\fR may be omitted.`,
    sentence(`${model.path[0]} help COMMAND prints the options of one command`),
  ]
}

function commandSection(command: CommandModel): string[] {
  const args = command.arguments.flatMap(({ name, about, choices }) =>
    tagged(`\\fI${text(name)}\\fR`, choices.length === 0 ? about : `${about}: ${choices.join(', ')}`),
  )
  return [`.SS ${quoted(usageOf(command))}`, sentence(command.about), ...args, ...optionsOf(command)]
}

function optionsOf({ options }: CommandModel): string[] {
  return options.flatMap((option) => tagged(optionTag(option), option.about).concat(notes(option)))
}

function optionTag({ short, long, value }: OptionModel): string {
  const flags = [short, long].filter((flag) => flag !== undefined).map((flag) => `\\fB${text(flag)}\\fR`)
  return flags.join(', ') + (value === undefined ? '' : ` \\fI${text(value.slice(1, -1))}\\fR`)
}

function notes({ required, choices, env, byDefault }: OptionModel): string[] {
  return [
    ...(required ? ['Required.'] : []),
    ...(choices.length === 0 ? [] : [sentence(`Choices: ${choices.join(', ')}`)]),
    ...(byDefault === undefined ? [] : [sentence(`Default: ${byDefault.replaceAll(/,(?! )/g, ', ')}`)]),
    ...(env === undefined ? [] : [sentence(`Environment variable: ${env}`)]),
  ]
}

/** Each variable once, with the option that it replaces. */
function environment(model: CommandModel): string[] {
  const flags = new Map<string, Set<string>>()
  for (const { options } of everyCommand(model)) {
    for (const { env, long } of options) {
      if (env !== undefined) flags.set(env, (flags.get(env) ?? new Set()).add(long))
    }
  }
  return [...flags]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([env, longs]) => {
      return tagged(`.B ${text(env)}`, `The same as ${[...longs].join(', ')}; the option overrides the variable`)
    })
}

function exitStatuses(): string[] {
  const rows = Object.entries(ExitStatus).map(([name, status]) => {
    return tagged(`.B ${status}`, EXIT_STATUS[name as keyof typeof ExitStatus])
  })
  return [...rows.flat(), ...tagged('.B "130, 143"', SIGNAL_STATUS)]
}

function references(pages: readonly string[]): string {
  return pages
    .map((page) =>
      page.replace(/^(.*)(\(\d\))$/, (_, name: string, section: string) => `\\fB${text(name)}\\fR${section}`),
    )
    .join(', ')
}

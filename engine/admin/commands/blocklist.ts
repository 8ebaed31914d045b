import { type Command, Option } from 'commander'
import { type BlockList, type BlockListSelection, type Entry, LEFT_OUT } from '../../export/block-list.ts'
import { blockListSource, writeBlockList } from '../../export/block-list-source.ts'
import { BLOCK_LIST_FORMATS, type BlockListFormat, summaryLines } from '../../export/block-list-text.ts'
import { Fault } from '../../process/error-codes.ts'
import { writeNewFile } from '../../process/new-file.ts'
import { jsonLine, printable } from '../../process/table.ts'
import { type AdminContext, countOption, ofOrganization, printText, sharedOptions, withStore } from './context.ts'

/** Rules that standard error names; the others are counted. */
const NAMED_MAX = 20
/** Daemons that read the list run as other users. */
const FILE_MODE = 0o644

interface SelectionOptions {
  readonly org?: string
  readonly notApproved?: boolean
  readonly rejected?: boolean
  readonly minRisk: number
}

interface Options extends SelectionOptions {
  readonly format: BlockListFormat
  readonly out?: string
  readonly json?: boolean
}

/** posture-admin blocklist */
export function addBlockListCommands(program: Command): void {
  const blocklist = program
    .command('blocklist')
    .description('Write the hosts of platforms as a block list for a DNS server, proxy or firewall')
  selectionOptions(ofOrganization(sharedOptions(blocklist)))
    .addOption(
      new Option('--format <format>', 'Write for this program or device')
        .choices(BLOCK_LIST_FORMATS)
        .makeOptionMandatory(),
    )
    .option('--out <file>', 'Write to this file, replacing it, instead of standard output')
  blocklist.action((options: Options) => withStore(blocklist, (context) => print(blocklist, context, options)))
}

/** Adds the options that choose what a list blocks. */
export function selectionOptions(command: Command): Command {
  return command
    .option('--not-approved', 'Block all platforms that are not approved')
    .addOption(new Option('--rejected', 'Block rejected platforms only').conflicts('notApproved'))
    .addOption(
      new Option('--min-risk <risk>', 'Block only platforms with at least this risk, from 0 to 100')
        .default(0)
        .argParser(countOption(0, 100)),
    )
}

/** @throws Fault USAGE */
export function selectionOf({ notApproved, rejected, minRisk }: SelectionOptions): BlockListSelection {
  if (notApproved !== true && rejected !== true) {
    throw new Fault('USAGE', 'choose what to block: --not-approved or --rejected')
  }
  return { blocks: rejected === true ? 'rejected' : 'not-approved', riskMin: minRisk }
}

function print(command: Command, { store, administration, registry, clock }: AdminContext, options: Options): void {
  const selection = selectionOf(options)
  const organization = administration.organization(options.org)
  const nowMs = clock.nowMs()
  const source = blockListSource(store, registry, organization, nowMs)
  const { list, text: listText } = writeBlockList(source, organization, selection, options.format, nowMs)
  const text = options.json === true ? list.entries.map((entry) => `${jsonLine(entryRow(entry))}\n`).join('') : listText
  if (options.out === undefined) printText(command, text)
  else writeNewFile('--out', options.out, text, FILE_MODE)
  process.stderr.write(`${[...summaryLines(list, selection), ...leftOutLines(list)].join('\n')}\n`)
}

/** An entry in JSON, for formats of other products. */
function entryRow({ domain, kind, platform }: Entry): Readonly<Record<string, unknown>> {
  const { id, name, risk } = platform
  return { domain, covers: kind, platform_id: id, platform_name: name, risk: risk.score }
}

/** Each rule that is left out, and why. Patterns are only counted: there are many in each list. */
function leftOutLines({ leftOut }: BlockList): string[] {
  const named = leftOut.filter(({ reason }) => reason !== 'pattern')
  const lines = named.slice(0, NAMED_MAX).map(({ rule, reason, other }) => {
    const others = other === undefined ? '' : `: ${other.name}`
    return printable(`  ${rule.domain} (${rule.platform.name}) ${LEFT_OUT[reason]}${others}`)
  })
  return named.length > NAMED_MAX ? [...lines, `  and ${named.length - NAMED_MAX} more`] : lines
}

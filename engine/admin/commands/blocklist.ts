import { type Command, Option } from 'commander'
import { type BlockList, type Entry, LEFT_OUT } from '../../export/block-list.ts'
import { blockListSource, writeBlockList } from '../../export/block-list-source.ts'
import { BLOCK_LIST_FORMATS, type BlockListFormat, summaryLines } from '../../export/block-list-text.ts'
import { Fault } from '../../process/error-codes.ts'
import { writeNewFile } from '../../process/new-file.ts'
import { jsonLine, printable, type Shown } from '../../process/table.ts'
import type { BlockListLink, BlockListSelection } from '../../store/block-list-links.ts'
import {
  type AdminContext,
  changeOptions,
  countOption,
  ofOrganization,
  printText,
  sharedOptions,
  show,
  showSecret,
  timeText,
  withStore,
} from './context.ts'

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
  readonly format?: BlockListFormat
  readonly out?: string
  readonly json?: boolean
}

/** posture-admin blocklist; blocklist link create | list | revoke */
export function addBlockListCommands(blocklist: Command): void {
  blocklist
    // Options after `link create` are those of that command.
    .enablePositionalOptions()
    .allowExcessArguments()
  selectionOptions(ofOrganization(sharedOptions(blocklist)))
    .addOption(new Option('--format <format>', 'Write for this program or device').choices(BLOCK_LIST_FORMATS))
    .option('--out <file>', 'Write to this file, replacing it, instead of standard output')
  blocklist.action((options: Options) => {
    // A command with an action takes the wrong name of a command as an argument.
    const [word] = blocklist.args
    if (word !== undefined) throw new Fault('USAGE', `unknown command '${word}' (Did you mean link?)`)
    return withStore(blocklist, (context) => print(blocklist, context, options))
  })
  addLinkCommands(blocklist)
}

function addLinkCommands(blocklist: Command): void {
  const link = blocklist
    .command('link')
    .description("Manage links by which devices download block lists from the console's port")

  const create = selectionOptions(
    ofOrganization(
      changeOptions(
        link
          .command('create')
          .description('Create a link and show its secret once')
          .argument('<label>', 'Label for lists: the device'),
      ),
    ),
  )
  create.action((label: string, options: SelectionOptions) =>
    withStore(create, ({ administration }) => {
      const { blockListLinks } = administration
      const selection = selectionOf(options)
      const { record, raw } = blockListLinks.create(administration.organization(options.org), label, selection)
      showSecret(create, linkRows([record], raw), 'Secret (the password; the user name may be any)', raw)
    }),
  )

  const list = ofOrganization(sharedOptions(link.command('list').description('List the links of an organization')))
  list.action((options: { org?: string }) =>
    withStore(list, ({ store, administration }) => {
      show(list, linkRows(store.blockListLinks.ofOrganization(administration.organization(options.org).id)))
    }),
  )

  const revoke = ofOrganization(
    changeOptions(
      link
        .command('revoke')
        .description('Revoke a link permanently')
        .argument('<link>', 'Id of the link, or its 8 visible digits'),
    ),
  )
  revoke.action((idOrVisible: string, options: { org?: string }) =>
    withStore(revoke, ({ administration }) => {
      show(
        revoke,
        linkRows([administration.blockListLinks.revoke(administration.organization(options.org), idOrVisible)]),
      )
    }),
  )
}

function linkRows(links: readonly BlockListLink[], raw?: string): Shown {
  return {
    columns: [
      ['Label', 'label'],
      ['Path', 'path'],
      ['Blocks', 'blocks', { hide: 2 }],
      ['Risk from', 'min_risk', { hide: 3 }],
      ['Visible digits', 'visible', { hide: 4 }],
      ['Created', 'created_at', { hide: 5 }],
      ['Revoked', 'revoked_at', { hide: 1 }],
    ],
    rows: links.map(({ id, label, visible, blocks, riskMin, createdAtMs, revokedAtMs }) => ({
      ...(raw === undefined ? {} : { secret: raw }),
      ...{ id, label, visible, path: `/blocklist/${id}.FORMAT`, blocks, min_risk: riskMin },
      ...{ created_at: timeText(createdAtMs), revoked_at: timeText(revokedAtMs) },
    })),
  }
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
  const { format } = options
  if (format === undefined) throw new Fault('USAGE', `choose a --format: ${BLOCK_LIST_FORMATS.join(', ')}`)
  const organization = administration.organization(options.org)
  const nowMs = clock.nowMs()
  const source = blockListSource(store, registry, organization, nowMs)
  const { list, textAt } = writeBlockList(source, organization, selection, format)
  const jsonText = (): string => list.entries.map((entry) => `${jsonLine(entryRow(entry))}\n`).join('')
  const text = options.json === true ? jsonText() : textAt(nowMs)
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

import { type BlockList, blockListSource, type Entry, LEFT_OUT } from '../export/block-list.ts'
import { BLOCK_LIST_FORMATS, summaryLines, writeBlockList } from '../export/block-list-text.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { type NewFile, withNewFile } from '../kernel/process/new-file.ts'
import { oneOf, wholeNumber } from '../kernel/process/settings.ts'
import { jsonLine, printable } from '../kernel/process/table.ts'
import type { BlockListLink, BlockListSelection } from '../store/secrets.ts'
import { argument, type Commands, change, flag, group, option, query, table } from './command.ts'

/** Rules that standard error names; the others are counted. */
const NAMED_MAX = 20
/** Daemons that read the list run as other users. */
const FILE_MODE = 0o644

/** What a list blocks. */
const SELECTION = {
  notApproved: flag('--not-approved', 'Block all platforms that are not approved'),
  rejected: flag('--rejected', 'Block rejected platforms only', { conflicts: ['notApproved'] }),
  riskMin: option(
    '--min-risk <risk>',
    'Block only platforms with at least this risk, from 0 to 100',
    wholeNumber(0, 100).default(0),
  ),
}

interface Selection {
  readonly notApproved: boolean
  readonly rejected: boolean
  readonly riskMin: number
}

/** @throws Fault USAGE */
function selectionOf({ notApproved, rejected, riskMin }: Selection): BlockListSelection {
  if (!notApproved && !rejected) throw new Fault('USAGE', 'choose what to block: --not-approved or --rejected')
  return { blocks: rejected ? 'rejected' : 'not-approved', riskMin }
}

/** @param secret of a new link */
function links(rows: readonly BlockListLink[], secret?: string) {
  return table<BlockListLink>([
    ...(secret === undefined ? [] : [[null, 'secret', { of: () => secret }] as const]),
    [null, 'id'],
    ['Label', 'label'],
    ['Path', 'path', { of: ({ id }) => `/blocklist/${id}.FORMAT` }],
    ['Blocks', 'blocks', { hide: 2 }],
    ['Risk from', 'min_risk', { hide: 3, of: ({ riskMin }) => riskMin }],
    ['Prefix', 'prefix', { hide: 4, of: ({ visible }) => visible }],
    ['Created', 'created_at', { hide: 5 }],
    ['Revoked', 'revoked_at', { hide: 1 }],
  ])(rows)
}

export const commands: Commands = {
  '': query('', {
    params: {
      ...SELECTION,
      format: option('--format <format>', 'Write for this program or device', oneOf(BLOCK_LIST_FORMATS).optional()),
      out: option('--out <file>', 'Write to this file, replacing it, instead of standard output'),
    },
    around: ({ out }, work: (file: NewFile | undefined) => Promise<void>) =>
      withNewFile('--out', out, { mode: FILE_MODE }, work),
    async run({ store, registry, clock, organization, output }, { format, json, ...given }, file) {
      const selection = selectionOf(given)
      if (format === undefined) throw new Fault('USAGE', `choose a --format: ${BLOCK_LIST_FORMATS.join(', ')}`)
      const nowMs = clock.nowMs()
      const source = blockListSource(store, registry, organization, nowMs)
      const { list, textAt } = writeBlockList(source, organization, selection, format)
      const text = json ? list.entries.map((entry) => `${jsonLine(entryRow(entry))}\n`).join('') : textAt(nowMs)
      if (file === undefined) output.print(text)
      file?.write(text)
      await file?.complete()
      process.stderr.write(`${[...summaryLines(list, selection), ...leftOutLines(list)].join('\n')}\n`)
    },
  }),
  link: group("Manage links by which devices download block lists from the console's port", {
    create: change('Create a link and show its secret once', {
      params: { label: argument('<label>', 'Label for lists: the device'), ...SELECTION },
      run({ administration, organization }, { label, ...given }) {
        const { record, raw } = administration.blockListLinks.create(organization, label, selectionOf(given))
        const secret = { name: 'Secret (the password; the user name may be any)', raw }
        return { ...links([record], raw), secret }
      },
    }),
    list: query('List the links of an organization', {
      run: ({ store, organization }) => links(store.blockListLinks.ofOrganization(organization.id)),
    }),
    revoke: change('Revoke a link permanently', {
      params: { link: argument('<link>', 'Id of the link, or its prefix of 8 digits') },
      run: ({ administration, organization }, { link }) =>
        links([administration.blockListLinks.revoke(organization, link)]),
    }),
  }),
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

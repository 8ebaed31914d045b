import { isoSeconds } from '../kernel/process/clock.ts'
import type { Organization } from '../store/organizations.ts'
import type { BlockListSelection } from '../store/secrets.ts'
import {
  type BlockList,
  type BlockListSource,
  blockListOf,
  type Entry,
  type EntryKind,
  type FormatReach,
} from './block-list.ts'

/*
 * A block list in the format of a program or device. Names have only letters, digits, hyphens and
 * dots (block-list.ts), so that no name can end a line, a string or a comment.
 */
export const BLOCK_LIST_FORMATS = [
  'rpz',
  'hosts',
  'unbound',
  'dnsmasq',
  'squid',
  'edl',
  'adblock',
  'fortigate',
  'pan',
] as const
export type BlockListFormat = (typeof BLOCK_LIST_FORMATS)[number]

interface Format extends FormatReach {
  readonly product: string
  /** What begins a comment. undefined: the format has none. */
  readonly comment: string | undefined
  /** Lines between the comments and the entries. */
  readonly head?: (timeMs: number) => readonly string[]
  readonly lines: (entry: Entry) => readonly string[]
}

const kinds = (...all: readonly EntryKind[]): ReadonlySet<EntryKind> => new Set(all)
const NAME_CHARS_MAX = 253
/**
 * A name of a response policy zone is below the zone, and both together have at most 253
 * characters. This leaves 64 for the zone and its dot, and 2 for a wildcard.
 */
const RPZ_NAME_CHARS_MAX = NAME_CHARS_MAX - 64 - 2

/** `name` and `*.name`, as firewalls write them. */
function wildcardLines({ kind, domain }: Entry): readonly string[] {
  return [...(kind === 'below' ? [] : [domain]), ...(kind === 'exact' ? [] : [`*.${domain}`])]
}

const FORMATS: Readonly<Record<BlockListFormat, Format>> = {
  rpz: {
    product: 'Response policy zone of BIND, Knot Resolver, PowerDNS and others',
    comment: ';',
    kinds: kinds('exact', 'tree', 'below'),
    nameCharsMax: RPZ_NAME_CHARS_MAX,
    // RFC 1035 §5.1. The serial number grows with time (RFC 1982), so that secondaries notice a
    // change.
    head: (timeMs) => [
      '$TTL 300',
      `@ IN SOA localhost. hostmaster.localhost. ${Math.floor(timeMs / 1000) % 2 ** 32} 3600 600 86400 300`,
      '@ IN NS localhost.',
    ],
    lines: (entry) => wildcardLines(entry).map((name) => `${name} CNAME .`),
  },
  hosts: {
    product: 'Operating systems: hosts file',
    comment: '#',
    kinds: kinds('exact'),
    nameCharsMax: NAME_CHARS_MAX,
    // Without the second line, a program would ask DNS for the IPv6 address.
    lines: ({ domain }) => [`0.0.0.0 ${domain}`, `:: ${domain}`],
  },
  unbound: {
    product: 'Unbound',
    comment: '#',
    kinds: kinds('exact', 'tree'),
    nameCharsMax: NAME_CHARS_MAX,
    head: () => ['server:'],
    // Data without a zone makes a transparent one, so that names below are resolved as before.
    lines: ({ kind, domain }) =>
      kind === 'tree'
        ? [`    local-zone: "${domain}." always_nxdomain`]
        : [`    local-data: "${domain}. A 0.0.0.0"`, `    local-data: "${domain}. AAAA ::"`],
  },
  dnsmasq: {
    product: 'dnsmasq',
    comment: '#',
    kinds: kinds('exact', 'tree'),
    nameCharsMax: NAME_CHARS_MAX,
    // Without an address, the answer is NXDOMAIN.
    lines: ({ kind, domain }) => [kind === 'tree' ? `address=/${domain}/` : `host-record=${domain},0.0.0.0,::`],
  },
  squid: {
    product: 'Squid: file of an acl dstdomain',
    comment: '#',
    kinds: kinds('exact', 'tree'),
    nameCharsMax: NAME_CHARS_MAX,
    lines: ({ kind, domain }) => [kind === 'tree' ? `.${domain}` : domain],
  },
  edl: {
    product: 'External dynamic list of domains, for other firewalls',
    comment: '#',
    kinds: kinds('exact', 'tree', 'below'),
    nameCharsMax: NAME_CHARS_MAX,
    lines: wildcardLines,
  },
  adblock: {
    product: 'AdGuard Home, Pi-hole, browser extensions',
    comment: '!',
    kinds: kinds('tree'),
    nameCharsMax: NAME_CHARS_MAX,
    lines: ({ domain }) => [`||${domain}^`],
  },
  fortigate: {
    product: 'FortiGate: threat feed of domain names',
    comment: '#',
    kinds: kinds('exact', 'tree', 'below'),
    nameCharsMax: NAME_CHARS_MAX,
    lines: wildcardLines,
  },
  pan: {
    product: 'PAN-OS: external dynamic list of type Domain List',
    comment: undefined,
    kinds: kinds('exact', 'tree', 'below'),
    nameCharsMax: NAME_CHARS_MAX,
    lines: wildcardLines,
  },
}

export function formatReach(format: BlockListFormat): FormatReach {
  return FORMATS[format]
}

/** The program or device of a format, for help and pages. */
export function productOf(format: BlockListFormat): string {
  return FORMATS[format].product
}

export interface AboutBlockList {
  readonly organization: string
  readonly selection: BlockListSelection
  readonly timeMs: number
}

/** The text of a list. */
export function blockListText(list: BlockList, format: BlockListFormat, about: AboutBlockList): string {
  return blockListHead(list, format, about) + blockListEntries(list, format)
}

/** The lines before the entries: the only part that contains the time. */
function blockListHead(list: BlockList, format: BlockListFormat, about: AboutBlockList): string {
  return headText(format, aboutLines(list, about), about.timeMs)
}

function blockListEntries({ entries }: BlockList, format: BlockListFormat): string {
  return entriesText(entries, format)
}

/** Entries in a format, after comments. The comments are ASCII. */
export function formatText(
  entries: readonly Entry[],
  format: BlockListFormat,
  comments: readonly string[],
  timeMs: number,
): string {
  return headText(format, comments, timeMs) + entriesText(entries, format)
}

function headText(format: BlockListFormat, comments: readonly string[], timeMs: number): string {
  const { comment, head } = FORMATS[format]
  const first = comment === undefined ? [] : comments.map((line) => `${comment} ${line}`)
  return linesText([...first, ...(head?.(timeMs) ?? [])])
}

const entriesText = (entries: readonly Entry[], format: BlockListFormat): string =>
  linesText(entries.flatMap(FORMATS[format].lines))

const linesText = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

/** What is in a list and what is not, in lines of ASCII. */
function aboutLines(list: BlockList, { organization, selection, timeMs }: AboutBlockList): readonly string[] {
  return [
    `Block list of the Security Posture Service for ${asciiText(organization)}`,
    `Generated ${isoSeconds(timeMs)}`,
    ...summaryLines(list, selection),
  ]
}

/** Numbers of entries and of rules that are left out, as sentences. */
export function summaryLines(list: BlockList, { blocks, riskMin }: BlockListSelection): readonly string[] {
  const which = blocks === 'rejected' ? 'rejected' : 'not approved'
  const risk = riskMin > 0 ? ` and have a risk of ${riskMin} or more` : ''
  const reasons = new Map<string, number>()
  for (const { reason } of list.leftOut) reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  const leftOut = [...reasons].sort().map(([reason, count]) => `${count} ${reason}`)
  return [
    `${list.platforms} platforms are ${which}${risk}: ${list.entries.length} entries`,
    ...(leftOut.length > 0 ? [`Rules left out: ${leftOut.join(', ')}`] : []),
    ...(list.incomplete > 0
      ? [
          `${list.incomplete} domains are blocked without the names below them, except www, because the format has no wildcards`,
        ]
      : []),
  ]
}

/** Names of organizations are one line, but may have any letters. */
function asciiText(text: string): string {
  return JSON.stringify(text).replace(/[^\x20-\x7e]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}

/** A list of an organization, and its text with the time of its generation. */
export function writeBlockList(
  source: BlockListSource,
  organization: Organization,
  selection: BlockListSelection,
  format: BlockListFormat,
): { readonly list: BlockList; readonly textAt: (timeMs: number) => string } {
  const list = blockListOf(source, selection, formatReach(format))
  const entries = blockListEntries(list, format)
  const textAt = (timeMs: number): string =>
    blockListHead(list, format, { organization: organization.name, selection, timeMs }) + entries
  return { list, textAt }
}

import { readFileSync } from 'node:fs'
import { messageOf } from '../../engine/alert/message.ts'
import { payloadFields } from '../../engine/alert/payload.ts'
import { RULES } from '../../engine/alert/rules.ts'
import { type EntryKind, LEFT_OUT } from '../../engine/export/block-list.ts'
import { BLOCK_LIST_FORMATS, blockListText, formatReach, productOf } from '../../engine/export/block-list-text.ts'
import { Action } from '../../engine/formats/action.ts'
import { FORMATS } from '../../engine/formats/formats.ts'
import { LogLine, SCRATCH_BYTES } from '../../engine/formats/log-line.ts'
import { readUserAndBytes } from '../../engine/formats/user-name.ts'
import { BodyReader } from '../../engine/ingest/body-reader.ts'
import { SyslogMessage } from '../../engine/ingest/syslog/message.ts'
import { readSyslog } from '../../engine/ingest/syslog/read-message.ts'
import { ALERT_RULES } from '../../engine/store/alerts.ts'
import type { Platform } from '../../registry/platform.ts'
import { PRODUCTS, type Product, SAMPLES } from '../log-samples.ts'
import { code, codeBlock, markdownTable } from './markdown.ts'

/** Configuration files of forwarders. The page shows the files that the tests run. */
const SNIPPETS = new URL('../../../deploy/forwarders/', import.meta.url)
export const FORWARDERS = ['rsyslog', 'syslog-ng'] as const
export type Forwarder = (typeof FORWARDERS)[number]
/** One file with the destination, and files with the sources. */
export const PARTS = ['service-tls', 'service-tcp', 'service-udp', 'files', 'devices'] as const
export type Part = (typeof PARTS)[number]

/** The placeholders in the snippets, and their replacements. */
export const PLACEHOLDERS = {
  MONITORING_TOKEN: 'the token, `svc_mt_…`',
  INGEST_HOST: 'name or address of the service, as in its certificate',
  INGEST_PORT: '6514 for TLS, 514 for TCP and UDP',
  CA_FILE: "PEM file of the CA certificate that signed the service's certificate, or of a self-signed certificate",
  BUFFER_DIRECTORY: 'directory of the disk buffer of syslog-ng, such as `/var/lib/syslog-ng/posture`; it must exist',
  SQUID_LOG: 'path such as `/var/log/squid/access.log`',
  BIND_LOG: 'path such as `/var/log/named/queries.log`',
  RELAY_ADDRESS: 'the address of this machine that the devices send to',
  RELAY_PORT: '514, unless the devices use another port',
} as const
export type Placeholder = keyof typeof PLACEHOLDERS

export function snippet(forwarder: Forwarder, part: Part): string {
  return readFileSync(new URL(`${forwarder}/${part}.conf`, SNIPPETS), 'utf8')
}

/** Of the destinations, pages show the recommended one. */
const SHOWN_PARTS = ['service-tls', 'files', 'devices'] as const

export const FORWARDER_TABLES: readonly { readonly name: string; readonly make: () => string }[] = [
  { name: 'placeholders', make: placeholdersTable },
  ...FORWARDERS.flatMap((forwarder) =>
    SHOWN_PARTS.map((part) => ({
      name: `${forwarder} ${part}`,
      make: () => codeBlock('conf', snippet(forwarder, part)),
    })),
  ),
  ...familyNames().map((family) => ({ name: `samples ${family}`, make: () => samplesOf(family) })),
]

function placeholdersTable(): string {
  const rows = Object.entries(PLACEHOLDERS).map(([word, about]) => [code(word), about])
  return markdownTable(['Placeholder', 'Replace with'], rows)
}

function familyNames(): string[] {
  return SAMPLES.map(({ family }) => family).filter((family) => family !== undefined)
}

/** The sample lines from the sample that names the family to the next sample that names one. */
function samplesOf(family: string): string {
  const first = SAMPLES.findIndex((sample) => sample.family === family)
  const next = SAMPLES.findIndex((sample, index) => index > first && sample.family !== undefined)
  const samples = SAMPLES.slice(first, next < 0 ? undefined : next)
  return codeBlock('text', samples.map(({ lines }) => lines.join('\n')).join('\n'))
}

const COVERS: Readonly<Record<EntryKind, string>> = {
  exact: 'one name',
  tree: 'a domain with all names below it',
  below: 'all names below a domain',
}

/** The formats of block lists: their product, their entries, and the lines of a domain. */
export function blockListFormats(): string {
  const rows = BLOCK_LIST_FORMATS.map((format) => {
    const covers = [...formatReach(format).kinds].map((kind) => COVERS[kind]).join(', ')
    return [code(format), productOf(format), covers, sampleLines(format).map(code).join(' ')]
  })
  return markdownTable(['Format', 'Loaded by', 'Entries for', 'Lines of deepseek.com and all names below it'], rows)
}

function sampleLines(format: (typeof BLOCK_LIST_FORMATS)[number]): string[] {
  const { kinds } = formatReach(format)
  const entry = {
    kind: kinds.has('tree') ? 'tree' : 'exact',
    domain: 'deepseek.com',
    platform: {} as Platform,
  } as const
  const list = { entries: [entry], platforms: 1, leftOut: [], incomplete: 0 }
  const selection = { blocks: 'not-approved', riskMin: 0 } as const
  const text = blockListText(list, format, { organization: '', selection, timeMs: 0 })
  return text.split('\n').flatMap((line) => (line.includes('deepseek.com') ? [line.trim()] : []))
}

/** Why a rule is not in a list. */
export function leftOutReasons(): string {
  const rows = Object.entries(LEFT_OUT).map(([reason, about]) => [code(reason), `The rule ${about}`])
  return markdownTable(['Reason', 'Meaning'], rows)
}

const LINE_BYTES_MAX = 8192

/** A table of each kind of product, made by reading the products' lines. */
export function productTables(): string {
  return Object.entries(PRODUCTS)
    .map(([kind, products]) => `### ${kind}\n\n${table(products)}`)
    .join('\n\n')
}

function table(products: readonly Product[]): string {
  const rows = products.map((product) => {
    const { format, fields } = readProduct(product)
    return [product.name, product.enable, product.transport, code(format), fields.join(', ')]
  })
  // A test reads a second line of some products, for which nothing else differs.
  const isOther = (row: readonly string[], at: number): boolean =>
    at === 0 || row.slice(1).join() !== rows[at - 1]?.slice(1).join()
  return markdownTable(['Product', 'Turn on', 'Transport', 'Format', 'Also read'], rows.filter(isOther))
}

/**
 * The format that reads the product's line, and the fields that it finds beside host and client.
 *
 * @throws Error if it finds no client
 */
function readProduct({ before = [], line }: Product): { format: string; fields: string[] } {
  const read = new LogLine(new Uint8Array(LINE_BYTES_MAX + SCRATCH_BYTES))
  const body = new BodyReader()
  for (const text of [...before, line]) {
    const bytes = Buffer.from(text)
    read.bytes.set(bytes)
    const message = new SyslogMessage()
    readSyslog(read.view, 0, bytes.length, message, read.referenceMs)
    body.read(read, message.msgStart, bytes.length)
  }
  if (read.clientEnd <= read.clientStart) throw new Error(`no client: ${line}`)
  readUserAndBytes(read)
  const fields: string[] = []
  if (!Number.isNaN(read.timeMs)) fields.push('time')
  if (read.action !== Action.unknown) fields.push('action')
  if (read.userEnd > read.userStart) fields.push('user')
  if (read.bytesSent > 0 || read.bytesReceived > 0) fields.push('bytes')
  return { format: FORMATS[body.format]?.id ?? '', fields }
}

/** The tables and examples of docs/reference/alerts.md. */
export const ALERT_TABLES: Readonly<Record<string, () => string>> = {
  'alert rules': rulesTable,
  'alert message': () => codeBlock('json', JSON.stringify(EXAMPLE, null, 2)),
  'alert message fields': () =>
    markdownTable(
      ['Field', 'Meaning'],
      payloadFields().map(([name, about]) => [code(name), about]),
    ),
}

function rulesTable(): string {
  const rows = ALERT_RULES.map((rule) => {
    const { about, severity, threshold } = RULES[rule]
    const byDefault = threshold === undefined ? '' : `${threshold.byDefault} ${threshold.unit}`.trim()
    const range = threshold === undefined ? '' : `${threshold.min} to ${threshold.max}`
    return [code(rule), about, severity, byDefault, range]
  })
  return markdownTable(['Rule', 'Raises an alert if', 'Severity', 'Default threshold', 'Range'], rows)
}

/** A message as the service writes it. */
export const EXAMPLE = messageOf(
  {
    id: '2f1c7a52-6f0e-4f43-9d55-6a1f4b0b8a11',
    name: 'Acme',
    domain: 'acme.example',
    plan: 'enterprise',
    createdAtMs: 0,
    scanFrequency: 'daily',
    evidenceWindowDays: 30,
  },
  'unapproved-platform',
  [
    {
      id: '9b1fd2f59bb94d1cb7a2c0f14f1e3d07',
      organizationId: '2f1c7a52-6f0e-4f43-9d55-6a1f4b0b8a11',
      sequence: 1,
      rule: 'unapproved-platform',
      severity: 'high',
      createdAtMs: Date.parse('2026-11-20T09:15:02Z'),
      title: 'DeepSeek is used without approval (risk 88)',
      subject: { kind: 'platform', id: 'c3a2a6de-7c53-4a5e-8f6a-0a55a1c2b7d4', name: 'DeepSeek' },
      details: {
        platform_type: 'llm_chat',
        category: 'LLM Chat Assistant',
        vendor: 'DeepSeek',
        risk: 88,
        risk_reason: 'Stores data in mainland China; Trains on your content unless you opt out',
        decision: 'waiting',
        matches: 212,
        blocked_matches: 0,
        clients: 9,
        first_seen: '2026-11-20T08:58:41Z',
        last_seen: '2026-11-20T09:14:33Z',
      },
      messages: [],
    },
  ],
  { count: 1, isFirstScan: false, part: 1, parts: 1 },
)

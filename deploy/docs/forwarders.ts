import { readFileSync } from 'node:fs'
import { SAMPLES } from '../forwarders/samples.ts'
import { code, codeBlock, markdownTable } from './markdown.ts'

/** The configuration that forwarders are given, by the paths of its files: what the page shows is what the tests run. */
const SNIPPETS = new URL('../../../deploy/forwarders/', import.meta.url)
export const FORWARDERS = ['rsyslog', 'syslog-ng'] as const
export type Forwarder = (typeof FORWARDERS)[number]
/** Where the messages go, one of them; and where they come from. */
export const PARTS = ['service-tls', 'service-tcp', 'service-udp', 'files', 'devices'] as const
export type Part = (typeof PARTS)[number]

/** The words that a user replaces in the snippets, and what by. */
export const PLACEHOLDERS = {
  MONITORING_TOKEN: 'the token, `svc_mt_…`',
  INGEST_HOST: 'name or address of the service; its certificate must be for it',
  INGEST_PORT: '6514 for TLS, 514 for TCP and UDP',
  CA_FILE: "the authority of the service's certificate, or the certificate itself where it signed itself, as PEM",
  BUFFER_DIRECTORY: 'where syslog-ng keeps what waits, as `/var/lib/syslog-ng/posture`; it must exist',
  SQUID_LOG: 'as `/var/log/squid/access.log`',
  BIND_LOG: 'as `/var/log/named/queries.log`',
  RELAY_ADDRESS: 'the address of this machine that the devices send to',
  RELAY_PORT: '514, if the devices are not told another',
} as const
export type Placeholder = keyof typeof PLACEHOLDERS

export function snippet(forwarder: Forwarder, part: Part): string {
  return readFileSync(new URL(`${forwarder}/${part}.conf`, SNIPPETS), 'utf8')
}

export const FORWARDER_TABLES: readonly { readonly name: string; readonly make: () => string }[] = [
  { name: 'placeholders', make: placeholdersTable },
  ...FORWARDERS.flatMap((forwarder) =>
    PARTS.map((part) => ({ name: `${forwarder} ${part}`, make: () => codeBlock(snippet(forwarder, part)) })),
  ),
  { name: 'samples', make: samplesTable },
  ...familyNames().map((family) => ({ name: `samples ${family}`, make: () => samplesOf(family) })),
]

function placeholdersTable(): string {
  const rows = Object.entries(PLACEHOLDERS).map(([word, about]) => [code(word), about])
  return markdownTable(['Word', 'Replace it by'], rows)
}

function samplesTable(): string {
  const rows = SAMPLES.map(({ family, device, format, host }) => [family, device, code(format), code(host)])
  return markdownTable(['Family', 'Device and log', 'Format', 'What the sample names'], rows)
}

function familyNames(): string[] {
  return SAMPLES.map(({ family }) => family).filter((family) => family !== '')
}

/** The lines of a family, which are those from the one that names it to the next that names one. */
function samplesOf(family: string): string {
  const first = SAMPLES.findIndex((sample) => sample.family === family)
  const behind = SAMPLES.findIndex((sample, index) => index > first && sample.family !== '')
  const samples = SAMPLES.slice(first, behind < 0 ? undefined : behind)
  return codeBlock(samples.map(({ lines }) => lines.join('\n')).join('\n'))
}

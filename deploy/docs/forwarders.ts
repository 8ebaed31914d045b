import { readFileSync } from 'node:fs'
import { SAMPLES } from '../forwarders/samples.ts'
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

import type { Organization, Plan } from '../store/organizations.ts'
import type { Scope } from '../store/secrets.ts'
import type { Store } from '../store/store.ts'
import type { Administration } from './administration.ts'

/** The input of the first set-up. */
export interface SetupRequest {
  readonly name: string
  /** Used only if the organization does not exist yet. */
  readonly domain: string
  readonly plan?: Plan
  /** Label of the token and the key. */
  readonly label: string
  readonly scopes: readonly Scope[]
}

export interface SetupResult {
  readonly organization: Organization
  readonly created: boolean
  readonly apiKey: string
  readonly token: string
  readonly tokenId: string
}

/**
 * Creates an organization, unless it exists, with a monitoring token and an API key.
 *
 * @throws Fault CONFLICT at a limit, USAGE, NOT_ALLOWED.
 */
export function setUp(administration: Administration, store: Store, request: SetupRequest): SetupResult {
  const { name, domain, plan = 'enterprise', label, scopes } = request
  // One transaction: at a limit nothing is created, because its secrets would never be shown.
  return store.environment.write(() => {
    const existing = store.organizations.find(name)
    const organization = existing ?? administration.organizations.create({ name, domain, plan })
    const token = administration.tokens.generate(organization, label)
    const apiKey = administration.apiKeys.create(organization, label, scopes)
    const created = existing === undefined
    return { organization, created, apiKey: apiKey.raw, token: token.raw, tokenId: token.record.id }
  })
}

/** Addresses at which senders and API clients reach the service. */
export interface Reach {
  readonly host: string
  readonly apiPort: number
  readonly ingestPort: number
  readonly syslogPort: number
  /** The pin of its key; '' unless the service is known to use its self-signed certificate. */
  readonly pin: string
  readonly certificateFile: string
}

/** Instructions for one kind of client, with lines that are ready to paste. */
export interface ReadyLines {
  readonly title: string
  /** Each block is a command or the content of a file. */
  readonly steps: readonly { readonly what: string; readonly lines: readonly string[] }[]
}

/** The path that packages and documentation use. */
const TOKEN_FILE = '/etc/posture-collector/token'
const CA_FILE = '/etc/posture-ca.pem'
const BUFFER_DIRECTORY = '/var/lib/syslog-ng/posture'

/**
 * Instructions for a collector, rsyslog, syslog-ng and curl. No command contains a secret, because
 * other users can read the process list. The configuration of a syslog daemon has to contain the
 * token.
 */
export function readyLines(
  token: string,
  reach: Reach,
): Readonly<Record<'collector' | 'rsyslog' | 'syslogNg' | 'curl', ReadyLines>> {
  return {
    collector: {
      title: 'Collector, on the host that sees the traffic',
      steps: [
        {
          what: 'Paste the monitoring token, and press Enter and Ctrl-D',
          lines: [`sudo install --mode 600 --owner posture-collector /dev/stdin ${TOKEN_FILE}`],
        },
        { what: 'Set in /etc/posture-collector/collector.env', lines: collectorSettings(reach) },
        { what: 'Start', lines: ['sudo systemctl enable --now posture-collector'] },
      ],
    },
    rsyslog: {
      title: 'rsyslog, on a host that devices send syslog to; with the package rsyslog-gnutls',
      steps: [
        ...trustSteps(reach),
        {
          what: `${caNote(reach)}Write to /etc/rsyslog.d/60-posture.conf, owner root, mode 600`,
          lines: rsyslogLines(token, reach),
        },
        {
          what: 'Write to /etc/rsyslog.d/61-posture-devices.conf, without modules that another file loads',
          lines: RSYSLOG_DEVICES,
        },
        { what: 'Check and restart', lines: ['sudo rsyslogd -N1', 'sudo systemctl restart rsyslog'] },
      ],
    },
    syslogNg: {
      title: 'syslog-ng, on a host that devices send syslog to',
      steps: [
        ...trustSteps(reach),
        {
          what: 'Create the directory of the buffer',
          lines: [`sudo install --directory --mode 700 ${BUFFER_DIRECTORY}`],
        },
        {
          what: `${caNote(reach)}Write to /etc/syslog-ng/conf.d/60-posture.conf, owner root, mode 600`,
          lines: [...syslogNgLines(token, reach), ...SYSLOG_NG_DEVICES],
        },
        {
          what: 'Check and restart',
          lines: ['sudo syslog-ng --syntax-only', 'sudo systemctl restart syslog-ng'],
        },
      ],
    },
    curl: { title: 'API', steps: [...trustSteps(reach), ...curlSteps(reach)] },
  }
}

/** The data directory is closed to other users, so clients need a copy of the certificate. */
function trustSteps({ certificateFile }: Reach): ReadyLines['steps'] {
  if (certificateFile === '') return []
  return [
    {
      what: `On this host, once; then copy ${CA_FILE} to the same place on other hosts`,
      lines: [`sudo install --mode 644 ${certificateFile} ${CA_FILE}`],
    },
  ]
}

/** Where the certificate is not known, that of its CA is needed. */
function caNote({ certificateFile }: Reach): string {
  return certificateFile === '' ? `Copy the service's CA certificate to ${CA_FILE}. ` : ''
}

function collectorSettings(reach: Reach): string[] {
  return [`SVC_TOKEN_FILE=${TOKEN_FILE}`, ...endpointSettings(reach)]
}

/** The settings with which a collector finds the service. */
export function endpointSettings({ host, ingestPort, pin }: Reach): string[] {
  return [
    `SVC_ENDPOINT=${host}`,
    ...(ingestPort === INGEST_PORT ? [] : [`HTTPS_PORT=${ingestPort}`]),
    ...(pin === '' ? [] : [`SERVICE_FINGERPRINT=${pin}`]),
  ]
}

const INGEST_PORT = 9443

/** The same as deploy/forwarders/rsyslog/service-tls.conf, without comments. */
function rsyslogLines(token: string, { host, syslogPort }: Reach): string[] {
  return [
    `global(defaultNetstreamDriverCAFile="${CA_FILE}")`,
    'template(name="posture" type="string"',
    `  string="<%PRI%>1 %TIMESTAMP:::date-rfc3339% %HOSTNAME% - - - [svc@00000 key=\\"${token}\\"] %rawmsg-after-pri%")`,
    'ruleset(name="posture") {',
    '  action(type="omfwd" template="posture"',
    `    target="${host}" port="${syslogPort}" protocol="tcp" TCP_Framing="octet-counted"`,
    `    StreamDriver="gtls" StreamDriverMode="1" StreamDriverAuthMode="x509/name" StreamDriverPermittedPeers="${host}"`,
    '    queue.type="Disk" queue.filename="posture" queue.size="100000000" queue.maxDiskSpace="4g"',
    '    queue.saveOnShutdown="on" queue.dequeueBatchSize="1"',
    '    action.resumeRetryCount="-1" action.resumeInterval="5")',
    '}',
  ]
}

/** The same as deploy/forwarders/syslog-ng/service-tls.conf, without comments. */
function syslogNgLines(token: string, { host, syslogPort }: Reach): string[] {
  return [
    `rewrite r_posture { set("${token}" value(".SDATA.svc@00000.key")); };`,
    'destination d_posture {',
    `  syslog("${host}" port(${syslogPort}) transport("tls") time-reopen(5)`,
    `    tls(ca-file("${CA_FILE}") peer-verify(required-trusted))`,
    `    disk-buffer(reliable(yes) dir("${BUFFER_DIRECTORY}") mem-buf-size(16777216) disk-buf-size(1073741824)));`,
    '};',
  ]
}

/** As deploy/forwarders/rsyslog/devices.conf, without its comments. */
const RSYSLOG_DEVICES = [
  'module(load="imudp")',
  'module(load="imtcp")',
  'input(type="imudp" address="0.0.0.0" port="514" ruleset="posture")',
  'input(type="imtcp" address="0.0.0.0" port="514" ruleset="posture")',
]

/** As deploy/forwarders/syslog-ng/devices.conf, without its comments. */
const SYSLOG_NG_DEVICES = [
  'source s_posture_devices {',
  '  network(ip("0.0.0.0") port(514) transport("udp") flags(no-parse));',
  '  network(ip("0.0.0.0") port(514) transport("tcp") flags(no-parse));',
  '};',
  'log { source(s_posture_devices); rewrite(r_posture); destination(d_posture); };',
]

function curlSteps({ host, apiPort, certificateFile }: Reach): ReadyLines['steps'] {
  const ca = certificateFile === '' ? '' : ` --cacert ${CA_FILE}`
  return [
    {
      what: 'Paste X-API-Key: and the API key in one line, and press Enter and Ctrl-D',
      lines: ['install --mode 600 /dev/stdin api-key.txt'],
    },
    {
      what: 'Ask for the findings',
      lines: [`curl${ca} --header @api-key.txt https://${host}:${apiPort}/api/v1/discovery`],
    },
  ]
}

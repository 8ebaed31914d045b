import type { Scope } from '../store/api-keys.ts'
import type { Organization, Plan } from '../store/organizations.ts'
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
  const existing = store.organizations.find(request.name)
  const { name, domain, plan = 'enterprise', label, scopes } = request
  const organization = existing ?? administration.organizations.create({ name, domain, plan })
  const token = administration.tokens.generate(organization, label)
  const apiKey = administration.apiKeys.create(organization, label, scopes)
  const created = existing === undefined
  return { organization, created, apiKey: apiKey.raw, token: token.raw, tokenId: token.record.id }
}

/** Addresses at which senders and API clients reach the service. */
export interface Reach {
  readonly host: string
  readonly apiPort: number
  readonly ingestPort: number
  readonly syslogPort: number
  /** '' if the certificate is not the self-signed one of the service. */
  readonly fingerprint: string
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

/**
 * Instructions for a collector, rsyslog, syslog-ng and curl. No command contains a secret, because
 * other users can read the process list. The configuration of a syslog daemon has to contain the
 * token.
 */
export function readyLines(
  token: string,
  reach: Reach,
): Readonly<Record<'collector' | 'rsyslog' | 'syslogNg' | 'curl', ReadyLines>> {
  const trust = reach.certificateFile === '' ? '' : `${CA_FILE}, a copy of ${reach.certificateFile}`
  const check = trust === '' ? 'Trust the CA of the certificate' : `Trust ${trust}`
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
      title: 'rsyslog',
      steps: [
        { what: `${check}; write to /etc/rsyslog.d/60-posture.conf, mode 600`, lines: rsyslogLines(token, reach) },
      ],
    },
    syslogNg: {
      title: 'syslog-ng',
      steps: [
        {
          what: `${check}; write to /etc/syslog-ng/conf.d/60-posture.conf, mode 600`,
          lines: syslogNgLines(token, reach),
        },
      ],
    },
    curl: { title: 'API', steps: curlSteps(reach) },
  }
}

function collectorSettings({ host, ingestPort, fingerprint }: Reach): string[] {
  return [
    `SVC_TOKEN_FILE=${TOKEN_FILE}`,
    `SVC_ENDPOINT=${host}`,
    ...(ingestPort === INGEST_PORT ? [] : [`HTTPS_PORT=${ingestPort}`]),
    ...(fingerprint === '' ? [] : [`SVC_FINGERPRINT=${fingerprint}`]),
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
    '    disk-buffer(reliable(yes) dir("/var/lib/syslog-ng/posture") mem-buf-size(16777216) disk-buf-size(1073741824)));',
    '};',
  ]
}

function curlSteps({ host, apiPort, certificateFile }: Reach): ReadyLines['steps'] {
  const ca = certificateFile === '' ? '' : ` --cacert ${certificateFile}`
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

import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { z } from 'zod'
import { LOG_LEVELS } from '../engine/process/log.ts'
import { oneOf, onOrOff, portList, portNumber, setting, someText, wholeNumber } from '../engine/process/settings.ts'
import type { LiveOptions } from './capture/live.ts'
import { DNS_PORTS, TLS_PORTS } from './decode/ports.ts'
import { withoutBrackets } from './host.ts'
import {
  LANES_MAX,
  LIVE_RING_BYTES,
  LIVE_SNAPLEN_BYTES,
  OUTBOX_AGE_MS,
  OUTBOX_BYTES,
  OUTBOX_MEMORY_BYTES,
  SNAPLEN_BYTES_MAX,
} from './limits.ts'
import { OUTBOX_IN_MEMORY, type OutboxLimits } from './outbox/outbox-limits.ts'

/** A name, an IPv4 address, or an IPv6 address with brackets or without. */
function isHost(text: string): boolean {
  return isIP(withoutBrackets(text)) !== 0 || /^[A-Za-z0-9._-]{1,255}$/.test(text)
}

const MEGABYTE = 1024 * 1024
const DAY_MS = 86_400_000

export const logLevelSetting = setting(oneOf(LOG_LEVELS).default('INFO'), {
  flag: '--log-level <level>',
  env: 'LOG_LEVEL',
  about: 'DEBUG, INFO, WARNING or ERROR',
})
export const registrySetting = setting(z.string().default(''), {
  flag: '--registry <file>',
  env: 'REGISTRY_FILE',
  about: 'YAML or JSON file that adds, overrides or disables platforms',
})
export const lanesSetting = setting(wholeNumber(0, LANES_MAX).optional(), {
  flag: '--decode-workers <count>',
  env: 'DECODE_WORKERS',
  about: 'Threads that decode packets; 0: the thread that captures decodes, too',
  defaultAbout: 'for an interface cores - 2, from 0 to 4; for a file cores - 1, from 1 to 4',
})

export const dnsPortsSetting = setting(portList(DNS_PORTS), {
  flag: '--dns-ports <ports>',
  env: 'DNS_PORTS',
  about: 'Ports of DNS servers, parted by commas',
})
export const tlsPortsSetting = setting(portList(TLS_PORTS), {
  flag: '--tls-ports <ports>',
  env: 'TLS_PORTS',
  about: 'Ports of servers that speak TLS or QUIC; a capture file is searched for ClientHellos on every port',
})

export const healthPortSetting = setting(portNumber({ orAny: true }).default(9090), {
  env: 'HEALTH_PORT',
  about: 'Local health endpoint port; 0 lets the system choose one',
})

export const outboxSetting = setting(someText().default('/var/lib/posture-collector'), {
  flag: '--outbox <directory>',
  env: 'OUTBOX',
  about: 'Directory of the events that wait to be forwarded; they survive a crash there. memory: they do not',
})

/** The settings of a collector that forwards. */
export const collectorSettings = z.object({
  token: setting(z.string().regex(/^svc_mt_[0-9a-f]{48}$/, 'expected svc_mt_ and 48 hex digits'), {
    flag: '--token <token>',
    env: 'SVC_TOKEN',
    about: 'Organization monitoring token; prefer the variable, other users can read the command line',
    secret: true,
  }),
  endpoint: setting(
    z
      .string()
      .refine(isHost, 'expected a host name or address; a port is given by --https-port or --syslog-port')
      .default('localhost'),
    {
      flag: '--endpoint <host>',
      env: 'SVC_ENDPOINT',
      about: 'Ingest hostname',
    },
  ),
  httpsPort: setting(portNumber().default(9443), {
    flag: '--https-port <port>',
    env: 'HTTPS_PORT',
    about: 'HTTPS ingest port',
  }),
  httpsEnabled: setting(onOrOff().default(true), {
    flag: '--no-https',
    env: 'HTTPS_ENABLED',
    about: 'HTTPS batch forwarding on/off',
  }),
  syslogEnabled: setting(onOrOff().optional(), {
    flag: '--syslog',
    env: 'SYSLOG_ENABLED',
    about: 'Syslog forwarding on/off, besides HTTPS or in its place',
    defaultAbout: 'on where HTTPS is off',
  }),
  syslogPort: setting(portNumber().default(6514), {
    flag: '--syslog-port <port>',
    env: 'SYSLOG_PORT',
    about: 'Syslog forwarding port',
  }),
  syslogProtocol: setting(oneOf(['tls', 'tcp', 'udp']).default('tls'), {
    flag: '--syslog-protocol <protocol>',
    env: 'SYSLOG_PROTOCOL',
    about: 'tls, tcp or udp',
  }),
  ca: setting(z.string().default(''), {
    flag: '--ca <file>',
    env: 'SVC_CA',
    about: "PEM file of the authority that signed the service's certificate, or of that certificate itself",
  }),
  fingerprint: setting(
    z
      .string()
      .default('')
      .transform((text) => text.replaceAll(':', '').toLowerCase())
      .pipe(z.string().regex(/^([0-9a-f]{64})?$/, 'expected the 64 hex digits of a SHA-256')),
    {
      flag: '--fingerprint <sha256>',
      env: 'SVC_FINGERPRINT',
      about: "SHA-256 fingerprint of the service's certificate: trust this one and no other",
    },
  ),
  interface: setting(someText().default('eth0'), {
    flag: '--interface <name>',
    env: 'INTERFACE',
    about: 'Network interface to capture on',
  }),
  snaplenBytes: setting(wholeNumber(64, SNAPLEN_BYTES_MAX).default(LIVE_SNAPLEN_BYTES), {
    flag: '--snaplen <bytes>',
    env: 'SNAPLEN',
    about: 'Bytes of each packet that are captured; a name that stands behind them is not seen',
  }),
  ringMegabytes: setting(wholeNumber(1, 1024).default(LIVE_RING_BYTES / MEGABYTE), {
    flag: '--ring-size <MB>',
    env: 'RING_SIZE',
    about: 'Ring buffer between kernel and collector; a larger one rides out longer bursts',
  }),
  promiscuous: setting(onOrOff().default(false), {
    flag: '--promiscuous',
    env: 'PROMISCUOUS',
    about: 'Capture also what is not addressed to this host: for mirror ports and taps',
  }),
  tunnels: setting(onOrOff().default(false), {
    flag: '--tunnels',
    env: 'CAPTURE_TUNNELS',
    about: 'Capture tunnels (VXLAN, GENEVE, GRE, GTP-U, IP in IP, MPLS, PPPoE) whole, to find the names in them',
  }),
  expression: setting(z.string().default(''), {
    flag: '--filter <expression>',
    env: 'CAPTURE_FILTER',
    about: 'Watch only packets that pass this expression, too: "not net 10.9.0.0/16" (see man pcap-filter)',
  }),
  outbox: outboxSetting,
  outboxMegabytes: setting(wholeNumber(1, 1_000_000).optional(), {
    flag: '--outbox-size <MB>',
    env: 'OUTBOX_SIZE',
    about: 'What the events that wait may take; beyond it the oldest are dropped',
    defaultAbout: `${OUTBOX_BYTES / MEGABYTE}, in memory ${OUTBOX_MEMORY_BYTES / MEGABYTE}`,
  }),
  outboxDays: setting(wholeNumber(1, 3650).default(OUTBOX_AGE_MS / DAY_MS), {
    flag: '--outbox-age <days>',
    env: 'OUTBOX_AGE',
    about: 'How long an event may wait before it is dropped',
  }),
  aggregateSeconds: setting(wholeNumber(0, 3600).default(10), {
    flag: '--aggregate <seconds>',
    env: 'AGGREGATE_SECONDS',
    about: 'Matches of one client, name and method within so long become one event with a count; 0: each is an event',
  }),
  healthPort: healthPortSetting,
  user: setting(z.string().default(''), {
    flag: '--user <name>',
    env: 'RUN_AS',
    about: 'Started as root: the user to become once the interface is open, by name or as uid:gid',
    defaultAbout: 'posture-collector where there is one, else nobody',
  }),
  decodeWorkers: lanesSetting,
  dnsPorts: dnsPortsSetting,
  tlsPorts: tlsPortsSetting,
  registry: registrySetting,
  logLevel: logLevelSetting,
})

export type CollectorSettings = z.output<typeof collectorSettings>

/**
 * Decode workers where the settings name none. An interface leaves two cores to capture, outbox and forwarding, and with no more a worker costs
 * memory and gains nothing; a file is read by one thread while another decodes.
 */
export function lanesFor(source: 'interface' | 'file', wanted: number | undefined): number {
  const cores = availableParallelism()
  return wanted ?? (source === 'interface' ? within(cores - 2, 0) : within(cores - 1, 1))
}

const LANES_DEFAULT_MAX = 4
const within = (lanes: number, least: number): number => Math.min(Math.max(lanes, least), LANES_DEFAULT_MAX)

/** Whether events go by syslog: as the settings say, or because they go by nothing else. */
export function syslogIsOn({ httpsEnabled, syslogEnabled }: CollectorSettings): boolean {
  return syslogEnabled ?? !httpsEnabled
}

/** What the settings say of the outbox. */
export function outboxLimits({ outbox, outboxMegabytes, outboxDays }: CollectorSettings): OutboxLimits {
  const bytes = outbox === OUTBOX_IN_MEMORY ? OUTBOX_MEMORY_BYTES : OUTBOX_BYTES
  return {
    bytesMax: outboxMegabytes === undefined ? bytes : outboxMegabytes * MEGABYTE,
    ageMsMax: outboxDays * DAY_MS,
  }
}

/** What the settings say of a live capture. */
export function liveOptions(settings: CollectorSettings): LiveOptions {
  const { snaplenBytes, ringMegabytes, promiscuous, tunnels, expression } = settings
  return {
    name: settings.interface,
    snaplenBytes,
    ringBytes: ringMegabytes * MEGABYTE,
    promiscuous,
    tunnels,
    expression,
  }
}

/** The settings of a collector that only reads and prints. */
export const readerSettings = z.object({
  decodeWorkers: lanesSetting,
  dnsPorts: dnsPortsSetting,
  tlsPorts: tlsPortsSetting,
  registry: registrySetting,
  logLevel: logLevelSetting,
})

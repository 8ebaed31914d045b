import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import type { Command } from 'commander'
import { z } from 'zod'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import { LOG_LEVELS } from '../engine/kernel/process/log.ts'
import { withoutBrackets } from '../engine/kernel/process/network.ts'
import { registryRootSetting, registrySetting } from '../engine/kernel/process/registry-setting.ts'
import {
  networkList,
  oneOf,
  onOrOff,
  portList,
  portNumber,
  readSettings,
  setting,
  someText,
  wholeNumber,
} from '../engine/kernel/process/settings.ts'
import { sudoUser, tokenOf, tokenSettings } from '../engine/kernel/process/token-setting.ts'
import type { LiveOptions } from './capture/live.ts'
import { DNS_PORTS, GENEVE_PORTS, PROXY_PORTS, TLS_PORTS, VXLAN_PORTS } from './decode/ports.ts'
import {
  LANES_MAX,
  LIVE_RING_BYTES,
  OUTBOX_AGE_MS,
  OUTBOX_BYTES,
  OUTBOX_MEMORY_BYTES,
  SYSLOG_PORT,
  SYSLOG_PROTOCOL,
} from './limits.ts'
import { OUTBOX_IN_MEMORY, type OutboxLimits } from './outbox/outbox-store.ts'
import { userToBecome } from './privileges.ts'

/** Accepts a name, an IPv4 address, or an IPv6 address with or without brackets. */
function isHost(text: string): boolean {
  return isIP(withoutBrackets(text)) !== 0 || /^[A-Za-z0-9._-]{1,255}$/.test(text)
}

const MEGABYTE = 1024 * 1024

const logLevelSetting = setting(oneOf(LOG_LEVELS).default('INFO'), {
  flag: '--log-level <level>',
  env: 'LOG_LEVEL',
  about: 'Log messages of this level and above: DEBUG, INFO, WARNING or ERROR',
})
const lanesSetting = setting(wholeNumber(0, LANES_MAX).optional(), {
  flag: '--decode-workers <count>',
  env: 'DECODE_WORKERS',
  advanced: 'Other programs need the cores',
  about: 'Decode packets in this many threads, for a file at most cores - 1; 0 decodes in the capture thread',
  defaultAbout: 'interface: cores - 2, from 0 to 4; file: cores - 1, from 1 to 4',
})

const dnsPortsSetting = setting(portList(DNS_PORTS), {
  flag: '--dns-ports <ports>',
  env: 'DNS_PORTS',
  advanced: 'DNS uses another port',
  about: 'Look for DNS on these server ports, comma-separated',
})
const tlsPortsSetting = setting(portList(TLS_PORTS), {
  flag: '--tls-ports <ports>',
  env: 'TLS_PORTS',
  advanced: 'TLS uses another port',
  about: 'Look for TLS and QUIC on these server ports, comma-separated; capture files are searched on every port',
})

const proxyPortsSetting = setting(portList(PROXY_PORTS, { orOff: true }), {
  flag: '--proxy-ports <ports>',
  env: 'PROXY_PORTS',
  advanced: 'A proxy uses another port',
  about:
    'Look for requests to HTTP and SOCKS proxies on these server ports, comma-separated; CONNECT is read on every port of a capture file; off reads no handshake of a proxy',
})
const vxlanPortsSetting = setting(portList(VXLAN_PORTS), {
  flag: '--vxlan-ports <ports>',
  env: 'VXLAN_PORTS',
  advanced: 'VXLAN uses another port',
  about: 'Look inside VXLAN tunnels on these UDP ports, comma-separated; on an interface only with --capture-tunnels',
})
const genevePortsSetting = setting(portList(GENEVE_PORTS), {
  flag: '--geneve-ports <ports>',
  env: 'GENEVE_PORTS',
  advanced: 'GENEVE uses another port',
  about: 'Look inside GENEVE tunnels on these UDP ports, comma-separated; on an interface only with --capture-tunnels',
})
const httpNamesSetting = setting(onOrOff().default(false), {
  flag: '--http-names',
  env: 'HTTP_NAMES',
  advanced: 'Clients use plain HTTP',
  about: 'Read the server name in requests of plain HTTP, on port 80 and the proxy ports',
})
const candidatesSetting = setting(onOrOff().default(false), {
  flag: '--candidates',
  env: 'CANDIDATES',
  advanced: 'No firewall, proxy or DNS server sends its logs',
  about: 'Send names that look like AI services and that no platform has, without clients',
})
const loadBalancersSetting = setting(networkList().default([]), {
  flag: '--load-balancers <networks>',
  env: 'LOAD_BALANCERS',
  advanced: 'The collector is behind a load balancer with the PROXY protocol',
  about: 'Trust PROXY protocol headers that come from these networks, comma-separated',
})

export const healthPortSetting = setting(portNumber({ orAny: true }).default(9090), {
  env: 'HEALTH_PORT',
  about: 'Serve /health, /metrics and /counters on this loopback port; 0 lets the system choose one',
})

export const outboxSetting = setting(someText().default('/var/lib/posture-collector'), {
  flag: '--outbox <directory>',
  env: 'OUTBOX',
  about:
    'Store events in this directory until they are forwarded; "memory" stores nothing on disk, and a crash loses them',
})

const PINS_MAX = 2

/** Comma-separated pins: 64 hex digits of a certificate, or a pin of keyPin(). */
function readPins(text: string, context: z.RefinementCtx): string {
  const pins = text.split(',').map((pin) => {
    const [, kind = 'cert', digits = ''] = /^(?:sha256-(key|cert):)?([0-9a-f:]*)$/i.exec(pin.trim()) ?? []
    const hex = digits.replaceAll(':', '').toLowerCase()
    return hex.length === 64 ? `${kind.toLowerCase() === 'key' ? 'sha256-key:' : ''}${hex}` : undefined
  })
  if (text.trim() === '') return ''
  if (pins.length <= PINS_MAX && !pins.includes(undefined)) return pins.join(',')
  const message =
    'expected the 64 hex digits of a SHA-256, also with sha256-key: or sha256-cert: before them, at most two'
  context.addIssue({ code: 'custom', message })
  return z.NEVER
}

/** The settings of a collector that forwards. */
export const collectorSettings = z.object({
  ...tokenSettings,
  endpoint: setting(
    z
      .string()
      .refine(isHost, 'expected a host name or address; a port is given by --https-port or --syslog-port')
      .default('localhost'),
    {
      flag: '--endpoint <host>',
      env: 'SVC_ENDPOINT',
      about: 'Forward to the service on this host',
    },
  ),
  httpsPort: setting(portNumber().default(9443), {
    flag: '--https-port <port>',
    env: 'HTTPS_PORT',
    about: 'Connect to this HTTPS ingest port',
  }),
  httpsEnabled: setting(onOrOff().default(true), {
    flag: '--no-https',
    env: 'HTTPS_ENABLED',
    about: 'Forward by HTTPS; the flag turns it off',
  }),
  syslogEnabled: setting(onOrOff().optional(), {
    flag: '--syslog [on|off]',
    about: 'Forward by syslog, in addition to HTTPS or instead of it',
    defaultAbout: 'on if HTTPS is off, or if a port or protocol of syslog is given',
  }),
  // Optional, so that a value that equals the default is known to be given.
  syslogPort: setting(portNumber().optional(), {
    flag: '--syslog-port <port>',
    env: 'SYSLOG_PORT',
    about: 'Forward by syslog, to this port',
    defaultAbout: `${SYSLOG_PORT}`,
  }),
  syslogProtocol: setting(oneOf(['tls', 'tcp', 'udp']).optional(), {
    flag: '--syslog-protocol <protocol>',
    env: 'SYSLOG_PROTOCOL',
    about: 'Forward by syslog, over this transport: tls, tcp or udp',
    defaultAbout: SYSLOG_PROTOCOL,
  }),
  ca: setting(z.string().default(''), {
    flag: '--service-ca-file <file>',
    env: 'SERVICE_CA_FILE',
    formerly: 'SVC_CA',
    about: "Trust the CA certificate in this PEM file, or the service's own certificate",
  }),
  fingerprint: setting(z.string().default('').transform(readPins), {
    flag: '--service-fingerprint <sha256>',
    env: 'SERVICE_FINGERPRINT',
    formerly: 'SVC_FINGERPRINT',
    about:
      'Trust only this key of the service (sha256-key: and 64 hex digits), or the certificate with this SHA-256 fingerprint; two, comma-separated, during a change',
  }),
  interface: setting(someText().default('eth0'), {
    flag: '--interface <name>',
    env: 'INTERFACE',
    about: 'Capture on this network interface',
  }),
  ringMegabytes: setting(wholeNumber(1, 1024).default(LIVE_RING_BYTES / MEGABYTE), {
    flag: '--capture-buffer-mb <MB>',
    env: 'CAPTURE_BUFFER_MB',
    formerly: 'RING_SIZE',
    advanced: 'Packets are lost in bursts (`kernel`), or memory is short',
    about: 'Buffer this many megabytes between kernel and collector; a larger buffer absorbs longer bursts',
  }),
  promiscuous: setting(onOrOff().default(false), {
    flag: '--promiscuous',
    env: 'PROMISCUOUS',
    about: 'Capture packets that are addressed to other hosts also, for mirror ports and taps',
  }),
  tunnels: setting(onOrOff().default(false), {
    flag: '--capture-tunnels',
    env: 'CAPTURE_TUNNELS',
    advanced: 'The mirror port sends tunneled packets',
    about: 'Look for names inside tunnels (VXLAN, GENEVE, GRE, GTP-U, IP in IP, MPLS, PPPoE)',
  }),
  expression: setting(z.string().default(''), {
    flag: '--capture-filter <expression>',
    env: 'CAPTURE_FILTER',
    advanced: 'Some networks must not be captured, or a link is too busy',
    about: 'Capture only packets that also match this expression, such as "not net 10.9.0.0/16" (see man pcap-filter)',
  }),
  outbox: outboxSetting,
  outboxMegabytes: setting(wholeNumber(1, 1_000_000).optional(), {
    flag: '--outbox-max-mb <MB>',
    env: 'OUTBOX_MAX_MB',
    formerly: 'OUTBOX_SIZE',
    advanced: 'The disk is small, or the service may be away for days',
    about: 'Limit the outbox to this many megabytes; beyond them the oldest events are dropped',
    defaultAbout: `${OUTBOX_BYTES / MEGABYTE}, in memory ${OUTBOX_MEMORY_BYTES / MEGABYTE}`,
  }),
  aggregateSeconds: setting(wholeNumber(0, 3600).default(10), {
    flag: '--event-window-seconds <seconds>',
    env: 'EVENT_WINDOW_SECONDS',
    formerly: 'AGGREGATE_SECONDS',
    advanced: 'A test needs every match at once, or a busy link too many events',
    about: 'Combine matches of one client, name and method within this many seconds into one event; 0 turns this off',
  }),
  healthPort: healthPortSetting,
  user: setting(z.string().default(''), {
    flag: '--run-as <name>',
    env: 'RUN_AS',
    about: 'Drop root privileges to this user once the interface is open, by name or as uid:gid',
    defaultAbout: 'the owner of the outbox, unless it is root; then posture-collector if it exists, else nobody',
  }),
  decodeWorkers: lanesSetting,
  dnsPorts: dnsPortsSetting,
  tlsPorts: tlsPortsSetting,
  proxyPorts: proxyPortsSetting,
  candidates: candidatesSetting,
  httpNames: httpNamesSetting,
  vxlanPorts: vxlanPortsSetting,
  genevePorts: genevePortsSetting,
  loadBalancers: loadBalancersSetting,
  registry: registrySetting,
  registryRoot: registryRootSetting,
  logLevel: logLevelSetting,
})

export type CollectorSettings = z.output<typeof collectorSettings>

/**
 * The settings of a collector, with its token from wherever it is.
 *
 * @throws Fault USAGE
 */
export function readCollectorSettings(command: Command, environment: NodeJS.ProcessEnv): CollectorSettings {
  const given = readSettings(collectorSettings, { command, environment })
  if (given.proxyPorts.length === 0 && given.loadBalancers.length > 0) {
    throw new Fault('USAGE', '--load-balancers: without effect while --proxy-ports is off; leave out one of them')
  }
  const user = userToBecome(given)
  const owners = [...sudoUser(environment), ...(user === undefined ? [] : [user.uid])]
  return { ...given, token: tokenOf(given, { command, environment, owners }) }
}

/**
 * Returns the number of decode workers. With an interface, two cores are left to capture, outbox
 * and forwarding by default; on a machine with two cores or fewer, a worker would cost memory
 * without a gain. A file is read by one thread while others decode; with more workers than
 * remaining cores, the threads would wait for each other.
 *
 * @param wanted the setting, or undefined for the default
 */
export function lanesFor(
  source: 'interface' | 'file',
  wanted: number | undefined,
  cores = availableParallelism(),
): number {
  if (source === 'interface') return wanted ?? Math.min(Math.max(cores - 2, 0), LANES_DEFAULT_MAX)
  return Math.min(wanted ?? LANES_DEFAULT_MAX, Math.max(cores - 1, 1))
}

const LANES_DEFAULT_MAX = 4

/**
 * Whether events are sent by syslog: because any of its settings is given, or because HTTPS is off.
 */
export function syslogIsOn({
  httpsEnabled,
  syslogEnabled,
  syslogPort,
  syslogProtocol,
}: Pick<CollectorSettings, 'httpsEnabled' | 'syslogEnabled' | 'syslogPort' | 'syslogProtocol'>): boolean {
  return syslogEnabled ?? (!httpsEnabled || syslogPort !== undefined || syslogProtocol !== undefined)
}

/** The limits of the outbox by the settings. */
export function outboxLimits({ outbox, outboxMegabytes }: CollectorSettings): OutboxLimits {
  const bytes = outbox === OUTBOX_IN_MEMORY ? OUTBOX_MEMORY_BYTES : OUTBOX_BYTES
  return {
    bytesMax: outboxMegabytes === undefined ? bytes : outboxMegabytes * MEGABYTE,
    ageMsMax: OUTBOX_AGE_MS,
  }
}

/** The options of a live capture by the settings. */
export function liveOptions(settings: CollectorSettings): LiveOptions {
  const { ringMegabytes, promiscuous, tunnels, expression } = settings
  return {
    name: settings.interface,
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
  proxyPorts: proxyPortsSetting,
  httpNames: httpNamesSetting,
  vxlanPorts: vxlanPortsSetting,
  genevePorts: genevePortsSetting,
  loadBalancers: loadBalancersSetting,
  registry: registrySetting,
  logLevel: logLevelSetting,
})

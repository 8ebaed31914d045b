import { availableParallelism, hostname } from 'node:os'
import { z } from 'zod'
import { HTTP_IMPLEMENTATIONS, wildcardAddress } from '../engine/http/listen.ts'
import { Fault } from '../engine/kernel/process/error-codes.ts'
import { LOG_LEVELS } from '../engine/kernel/process/log.ts'
import { registrySetting } from '../engine/kernel/process/registry-setting.ts'
import { secretsKeySetting } from '../engine/kernel/process/secrets-key.ts'
import {
  brokerList,
  hostNames,
  listenAddresses,
  networkList,
  oneOf,
  onOrOff,
  originOrNone,
  portNumber,
  portOrOff,
  setting,
  someText,
  wholeNumber,
} from '../engine/kernel/process/settings.ts'
import { CONNECTIONS_PER_CLIENT_DEFAULT } from '../engine/limits.ts'
import { NODE_ROLES, type NodeRole } from '../engine/store/nodes.ts'
import { ORGANIZATION_LABELS } from './organization-metrics.ts'

/** All addresses, IPv4 and IPv6. */
const ANY_ADDRESS = '::'
const ANY_IPV4_ADDRESS = '0.0.0.0'
const LOOPBACK_ADDRESS = '127.0.0.1'

/** Comma-separated roles of a node. */
function roleList() {
  return z.string().transform((text, context): readonly NodeRole[] => {
    const roles = text.split(',').map((part) => NODE_ROLES.find((role) => role === part.trim()))
    if (roles.every((role) => role !== undefined)) return roles
    context.addIssue({ code: 'custom', message: `expected some of ${NODE_ROLES.join(', ')}, comma-separated` })
    return z.NEVER
  })
}

/** Nobody reads mail there: the service says at its start that the setting is missing. */
export const SALES_EMAIL_EXAMPLE = 'sales@example.com'

/** The settings of posture-service. */
export const serviceSettings = z.object({
  dataDir: setting(someText().default('/var/lib/posture-service'), {
    flag: '--data-dir <directory>',
    env: 'DATA_DIR',
    about: 'Store data and the self-signed certificate in this directory',
  }),
  apiAddress: setting(someText().optional(), {
    flag: '--api-address <address>',
    env: 'API_ADDRESS',
    about: 'Serve the REST API and the web console on this address',
    defaultAbout: `${ANY_ADDRESS}; ${LOOPBACK_ADDRESS} with --plain-http`,
  }),
  apiPort: setting(portNumber({ orAny: true }).default(8443), {
    flag: '--api-port <port>',
    env: 'API_PORT',
    about: 'Serve the REST API on this port',
  }),
  consolePort: setting(portOrOff().default(8444), {
    flag: '--console-port <port>',
    env: 'CONSOLE_PORT',
    about: 'Serve the web console on this port of the same address; "off" turns it off',
  }),
  consoleOrigin: setting(originOrNone().default(''), {
    flag: '--console-origin <origin>',
    env: 'CONSOLE_ORIGIN',
    about:
      'Expect browsers to reach the console at this origin, such as https://posture.example; for a proxy, and for passkeys',
  }),
  secretsKeyFile: secretsKeySetting,
  outboundNetworks: setting(networkList().default([]), {
    flag: '--outbound-networks <networks>',
    env: 'OUTBOUND_NETWORKS',
    advanced: 'An identity provider or a receiver of alerts has a private address',
    about:
      'Allow identity providers and alert receivers in these networks, comma-separated, such as 10.0.0.0/8; others need public addresses',
  }),
  apiThreads: setting(wholeNumber(1, 64).default(2), {
    flag: '--api-threads <count>',
    env: 'API_THREADS',
    advanced: 'Many programs read the API',
    about: 'Answer API requests in this many threads',
  }),
  ingestAddress: setting(someText().optional(), {
    flag: '--ingest-address <address>',
    env: 'INGEST_ADDRESS',
    about: 'Listen for HTTPS ingest and syslog on this address, unless a listener has its own; :: includes IPv4',
    defaultAbout: `${ANY_ADDRESS}; ${LOOPBACK_ADDRESS} with --plain-http`,
  }),
  ingestPort: setting(portOrOff().default(9443), {
    flag: '--ingest-port <port>',
    env: 'INGEST_PORT',
    about: 'Listen for HTTPS ingest on this port; "off" turns it off',
  }),
  httpLogs: setting(onOrOff().default(false), {
    flag: '--http-logs',
    env: 'HTTP_LOGS',
    advanced: 'Senders cannot send syslog',
    about: 'Accept log messages by HTTPS on the ingest port: JSON lines, and the HTTP Event Collector of Splunk',
  }),
  syslogTls: setting(listenAddresses().default([{ address: '', port: 6514 }]), {
    flag: '--syslog-tls <listeners>',
    env: 'SYSLOG_TLS',
    about:
      'Listen for syslog over TLS on these ports, comma-separated, each with or without an address; "off" turns it off',
    defaultAbout: '6514',
  }),
  syslogTcp: setting(listenAddresses().default([{ address: '', port: 514 }]), {
    flag: '--syslog-tcp <listeners>',
    env: 'SYSLOG_TCP',
    about: 'Listen for syslog over TCP, in the same form',
    defaultAbout: '514',
  }),
  syslogUdp: setting(listenAddresses().default([{ address: '', port: 514 }]), {
    flag: '--syslog-udp <listeners>',
    env: 'SYSLOG_UDP',
    about: 'Listen for syslog over UDP, in the same form',
    defaultAbout: '514',
  }),
  dnstapTls: setting(listenAddresses().default([]), {
    flag: '--dnstap-tls <listeners>',
    env: 'DNSTAP_TLS',
    advanced: 'DNS servers send dnstap',
    about: 'Listen for dnstap (Frame Streams) over TLS, in the same form; senders need a token binding',
    defaultAbout: 'off',
  }),
  dnstapTcp: setting(listenAddresses().default([]), {
    flag: '--dnstap-tcp <listeners>',
    env: 'DNSTAP_TCP',
    advanced: 'DNS servers send dnstap',
    about: 'Listen for dnstap over TCP, in the same form',
    defaultAbout: 'off',
  }),
  tokenRate: setting(wholeNumber(0, 100_000_000).default(0), {
    flag: '--token-max-messages-per-second <rate>',
    env: 'TOKEN_MAX_MESSAGES_PER_SECOND',
    formerly: 'TOKEN_RATE',
    advanced: 'One sender must not slow down the others',
    about: 'Accept this many log messages per second and token; beyond them its senders wait; 0 is unlimited',
  }),
  ingestThreads: setting(wholeNumber(1, 64).default(Math.min(4, availableParallelism())), {
    flag: '--ingest-threads <count>',
    env: 'INGEST_THREADS',
    advanced: 'Other programs need the cores',
    about: 'Parse syslog messages in this many threads; 1 parses them in the thread of the sockets',
    defaultAbout: 'one per processor, at most 4',
  }),
  brokers: setting(brokerList().default([]), {
    flag: '--brokers <brokers>',
    env: 'BROKERS',
    formerly: 'LOG',
    advanced: 'Events must survive the loss of a machine',
    about:
      'Acknowledge events when these brokers (NATS JetStream) have them on disk, comma-separated, such as nats://broker-1.example:4222; without, when the data directory has them',
  }),
  brokerCredentials: setting(z.string().default(''), {
    flag: '--broker-credentials-file <file>',
    env: 'BROKER_CREDENTIALS_FILE',
    formerly: 'LOG_CREDENTIALS',
    advanced: '`BROKERS` is set',
    about: 'Connect to the brokers with the nkey or the credentials in this file',
  }),
  brokerCa: setting(z.string().default(''), {
    flag: '--broker-ca-file <file>',
    env: 'BROKER_CA_FILE',
    formerly: 'LOG_CA',
    advanced: '`BROKERS` is set',
    about: 'Trust the brokers with the CA certificates in this PEM file',
    defaultAbout: "Node's CA certificates",
  }),
  brokerMegabytes: setting(wholeNumber(64, 100_000_000).default(8192), {
    flag: '--broker-events-max-mb <count>',
    env: 'BROKER_EVENTS_MAX_MB',
    formerly: 'LOG_MEGABYTES',
    advanced: 'The disks of the brokers are small, or a primary may be away for days',
    about: 'Keep at most this many megabytes of events on each broker; used when the log is created',
  }),
  nodeName: setting(someText().default(hostname()), {
    flag: '--node-name <name>',
    env: 'NODE_NAME',
    advanced: 'Two nodes have the same host name',
    about: 'Name this node in the status of a cluster, which is all services with the same --brokers',
    defaultAbout: 'the host name',
  }),
  roles: setting(roleList().default(NODE_ROLES), {
    flag: '--roles <roles>',
    env: 'ROLES',
    advanced: 'Nodes of a cluster have different tasks',
    about:
      'Limit what this node of a cluster does, comma-separated: ingest, scan (as the primary), api, console (on the primary)',
    defaultAbout: 'all',
  }),
  replicaMaxLag: setting(wholeNumber(5, 3600).default(10), {
    flag: '--replica-max-lag-seconds <seconds>',
    env: 'REPLICA_MAX_LAG_SECONDS',
    formerly: 'STALE_MAX',
    advanced: 'Revoked keys must stop earlier, or short disconnections must not stop the API',
    about:
      'Answer API and console with 503 when this node was last up to date with the primary of the cluster this many seconds ago; until then a key that was revoked meanwhile is valid',
  }),
  maxConnectionsPerAddress: setting(wholeNumber(0, 1_000_000).default(CONNECTIONS_PER_CLIENT_DEFAULT), {
    flag: '--max-connections-per-address <count>',
    env: 'MAX_CONNECTIONS_PER_ADDRESS',
    formerly: 'CONNECTIONS_PER_ADDRESS',
    advanced: 'Connections come through a proxy that hides addresses',
    about:
      'Accept this many connections from one address (IPv6: /64) on each port; 0, for listeners behind a proxy, sets no limits by address',
  }),
  proxyProtocol: setting(onOrOff().default(false), {
    flag: '--proxy-protocol',
    env: 'PROXY_PROTOCOL',
    advanced: 'Syslog comes through a load balancer',
    about:
      'Expect the PROXY protocol, version 2, on every syslog connection; only for listeners behind a load balancer',
  }),
  metricsPort: setting(portOrOff().default(9091), {
    flag: '--metrics-port <port>',
    env: 'METRICS_PORT',
    about: 'Serve /metrics and /healthz on this port; "off" turns them off',
  }),
  metricsAddress: setting(someText().default(LOOPBACK_ADDRESS), {
    flag: '--metrics-address <address>',
    env: 'METRICS_ADDRESS',
    advanced: 'Prometheus or probes run on another machine',
    about:
      'Serve the metrics port on this address, without TLS and authentication, such as 0.0.0.0 for probes of Kubernetes and of load balancers',
  }),
  organizationMetrics: setting(oneOf(ORGANIZATION_LABELS).default('off'), {
    flag: '--organization-metrics <labels>',
    env: 'ORGANIZATION_METRICS',
    advanced: 'Dashboards show each organization',
    about:
      'Add gauges of each organization to /metrics: "ids" labels them by id, "names" by id and name, "off" adds none',
  }),
  tlsKey: setting(z.string().default(''), {
    flag: '--tls-key <file>',
    env: 'TLS_KEY',
    about: 'Use the private key in this PEM file; without it the service creates a self-signed certificate',
  }),
  tlsCertificate: setting(z.string().default(''), {
    flag: '--tls-certificate <file>',
    env: 'TLS_CERTIFICATE',
    about: "Use the certificate chain in this PEM file, with the service's certificate first",
  }),
  tlsNames: setting(hostNames().default([]), {
    flag: '--tls-name <name>',
    env: 'TLS_NAMES',
    about:
      'Add this host name or IP address to the self-signed certificate; repeat the flag, or separate names by commas',
    repeatable: true,
  }),
  plainHttp: setting(onOrOff().default(false), {
    flag: '--plain-http',
    env: 'PLAIN_HTTP',
    advanced: 'A TLS proxy runs on the same machine',
    about: 'Serve plain HTTP on loopback only, for tests and local TLS proxies',
  }),
  hsts: setting(onOrOff().default(false), {
    flag: '--hsts',
    env: 'HSTS',
    advanced: 'No other program of this host needs plain HTTP',
    about:
      'Send Strict-Transport-Security: for a year, browsers use only HTTPS with every port of this host, also with ports of other programs',
  }),
  http: setting(oneOf(HTTP_IMPLEMENTATIONS).default('auto'), {
    flag: '--http-server <implementation>',
    env: 'HTTP_SERVER',
    formerly: 'HTTP_IMPLEMENTATION',
    advanced: 'uWebSockets.js is installed and must not be used',
    about: 'Use this HTTP implementation: auto, uws or node',
  }),
  accessLog: setting(wholeNumber(0, 1_000_000).default(0), {
    flag: '--access-log-max-per-second <lines>',
    env: 'ACCESS_LOG_MAX_PER_SECOND',
    formerly: 'ACCESS_LOG',
    advanced: 'You need a record of API requests',
    about: 'Log at most this many API requests per second and thread, with the prefix of their key; 0 logs none',
  }),
  salesEmail: setting(someText().default(SALES_EMAIL_EXAMPLE), {
    flag: '--sales-email <address>',
    env: 'SALES_EMAIL',
    about: 'Name this contact in API errors about the plan',
  }),
  registry: registrySetting,
  logLevel: setting(oneOf(LOG_LEVELS).default('INFO'), {
    flag: '--log-level <level>',
    env: 'LOG_LEVEL',
    about: 'Log messages of this level and above: DEBUG, INFO, WARNING or ERROR',
  }),
})

type GivenSettings = z.output<typeof serviceSettings>
export type ServiceSettings = GivenSettings & { readonly apiAddress: string; readonly ingestAddress: string }

const LOOPBACK = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1|localhost)$/

/**
 * Checks what must hold between settings, and sets the addresses that nobody gave: plain HTTP has
 * others. An address that somebody gave is never replaced.
 *
 * @throws Fault USAGE
 */
export function checkTogether(settings: GivenSettings): ServiceSettings {
  if ((settings.tlsKey === '') !== (settings.tlsCertificate === '')) {
    throw new Fault('USAGE', '--tls-key and --tls-certificate: set both or neither')
  }
  if (settings.brokers.length === 0 && settings.brokerCredentials + settings.brokerCa !== '') {
    throw new Fault(
      'USAGE',
      '--broker-credentials-file and --broker-ca-file: without effect unless --brokers names brokers',
    )
  }
  if (settings.brokers.length === 0 && settings.roles.length < NODE_ROLES.length) {
    throw new Fault('USAGE', '--roles: without effect unless --brokers names brokers')
  }
  const { plainHttp } = settings
  const byDefault = plainHttp ? LOOPBACK_ADDRESS : ANY_ADDRESS
  const apiAddress = wildcardAddress(settings.apiAddress ?? byDefault)
  const ingestAddress = wildcardAddress(settings.ingestAddress ?? byDefault)
  for (const [flag, address] of [
    ['--api-address', apiAddress],
    ['--ingest-address', ingestAddress],
  ] as const) {
    if (plainHttp && !LOOPBACK.test(address)) {
      throw new Fault(
        'USAGE',
        `--plain-http serves loopback only, found ${flag} ${address}; leave out --plain-http, or use ${LOOPBACK_ADDRESS}`,
      )
    }
  }
  refuseSharedPorts({ ...settings, apiAddress, ingestAddress })
  return { ...settings, apiAddress, ingestAddress }
}

/**
 * The kernel lets one program listen on a port for IPv4 and for IPv6, so that clients would reach
 * one listener or the other.
 *
 * @throws Fault USAGE
 */
function refuseSharedPorts(settings: ServiceSettings): void {
  const { apiAddress, ingestAddress, metricsAddress } = settings
  const before: { readonly flag: string; readonly address: string; readonly port: number }[] = []
  const add = (flag: string, address: string, port: number | 'off'): void => {
    if (port === 'off' || port === 0) return
    const other = before.find(
      (each) => each.port === port && (covers(each.address, address) || covers(address, each.address)),
    )
    if (other !== undefined)
      throw new Fault('USAGE', `${flag} ${port}: ${other.flag} uses the same port; choose another one`)
    before.push({ flag, address, port })
  }
  add('--api-port', apiAddress, settings.apiPort)
  add('--console-port', apiAddress, settings.consolePort)
  add('--ingest-port', ingestAddress, settings.ingestPort)
  add('--metrics-port', metricsAddress, settings.metricsPort)
  for (const [flag, listeners] of [
    ['--syslog-tls', settings.syslogTls],
    ['--syslog-tcp', settings.syslogTcp],
    ['--dnstap-tls', settings.dnstapTls],
    ['--dnstap-tcp', settings.dnstapTcp],
  ] as const) {
    for (const { address, port } of listeners) add(flag, address || ingestAddress, port)
  }
}

/** Whether a listener on the address gets all connections to the other one. */
function covers(address: string, other: string): boolean {
  return address === other || address === ANY_ADDRESS || (address === ANY_IPV4_ADDRESS && !other.includes(':'))
}

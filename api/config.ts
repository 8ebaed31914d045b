import { availableParallelism } from 'node:os'
import { z } from 'zod'
import { HTTP_IMPLEMENTATIONS } from '../engine/http/listen.ts'
import { Fault } from '../engine/process/error-codes.ts'
import { LOG_LEVELS } from '../engine/process/log.ts'
import {
  listenAddresses,
  oneOf,
  onOrOff,
  portNumber,
  portOrOff,
  setting,
  someText,
  wholeNumber,
} from '../engine/process/settings.ts'

/** Every address, of IPv4 and IPv6. */
const ANY_ADDRESS = '::'
const ANY_IPV4_ADDRESS = '0.0.0.0'

/** The settings of posture-service. */
export const serviceSettings = z.object({
  dataDir: setting(someText().default('/var/lib/posture-service'), {
    flag: '--data-dir <directory>',
    env: 'DATA_DIR',
    about: 'Directory of the store and the self-signed certificate',
  }),
  apiAddress: setting(someText().default(ANY_IPV4_ADDRESS), {
    flag: '--api-address <address>',
    env: 'API_ADDRESS',
    about: 'Address that the REST API listens on',
  }),
  apiPort: setting(portNumber({ orAny: true }).default(8443), {
    flag: '--api-port <port>',
    env: 'API_PORT',
    about: 'Port of the REST API',
  }),
  apiThreads: setting(wholeNumber(1, 64).default(2), {
    flag: '--api-threads <count>',
    env: 'API_THREADS',
    about: 'Threads that answer API requests',
  }),
  ingestAddress: setting(someText().default(ANY_ADDRESS), {
    flag: '--ingest-address <address>',
    env: 'INGEST_ADDRESS',
    about: 'Address that HTTPS ingest and syslog listen on, where their own setting names none; :: is IPv4, too',
  }),
  ingestPort: setting(portOrOff().default(9443), {
    flag: '--ingest-port <port>',
    env: 'INGEST_PORT',
    about: 'Port of HTTPS ingest, or off',
  }),
  syslogTls: setting(listenAddresses().default([{ address: '', port: 6514 }]), {
    flag: '--syslog-tls <listeners>',
    env: 'SYSLOG_TLS',
    about: 'Syslog over TLS: off, or ports with or without an address, parted by commas',
    defaultAbout: '6514',
  }),
  syslogTcp: setting(listenAddresses().default([{ address: '', port: 514 }]), {
    flag: '--syslog-tcp <listeners>',
    env: 'SYSLOG_TCP',
    about: 'Syslog over TCP: the same',
    defaultAbout: '514',
  }),
  syslogUdp: setting(listenAddresses().default([{ address: '', port: 514 }]), {
    flag: '--syslog-udp <listeners>',
    env: 'SYSLOG_UDP',
    about: 'Syslog over UDP: the same',
    defaultAbout: '514',
  }),
  syslogIdleSeconds: setting(wholeNumber(10, 604_800).default(3600), {
    flag: '--syslog-idle <seconds>',
    env: 'SYSLOG_IDLE',
    about: 'Seconds after which a syslog connection without a byte is closed',
  }),
  tokenRate: setting(wholeNumber(0, 100_000_000).default(0), {
    flag: '--token-rate <messages>',
    env: 'TOKEN_RATE',
    about: 'Syslog messages of one token that are taken in a second; its senders wait beyond it; 0 is any number',
  }),
  ingestThreads: setting(wholeNumber(1, 64).default(Math.min(4, availableParallelism())), {
    flag: '--ingest-threads <count>',
    env: 'INGEST_THREADS',
    about: 'Threads that read syslog messages; with 1 they are read where the sockets are',
    defaultAbout: 'as many as there are processors, 4 at most',
  }),
  proxyProtocol: setting(onOrOff().default(false), {
    flag: '--proxy-protocol',
    env: 'PROXY_PROTOCOL',
    about:
      'Expect the PROXY protocol, version 2, on every syslog connection: for listeners behind a load balancer only',
  }),
  metricsPort: setting(portOrOff().default(9091), {
    flag: '--metrics-port <port>',
    env: 'METRICS_PORT',
    about: 'Port on loopback of /metrics and /healthz, or off',
  }),
  tlsKey: setting(z.string().default(''), {
    flag: '--tls-key <file>',
    env: 'TLS_KEY',
    about: 'PEM file of the private key; without it a self-signed certificate is made',
  }),
  tlsCertificate: setting(z.string().default(''), {
    flag: '--tls-certificate <file>',
    env: 'TLS_CERTIFICATE',
    about: 'PEM file of the certificate chain, the own certificate first',
  }),
  plainHttp: setting(onOrOff().default(false), {
    flag: '--plain-http',
    env: 'PLAIN_HTTP',
    about: 'Serve plain HTTP, on loopback only, for tests and behind a local TLS proxy',
  }),
  http: setting(oneOf(HTTP_IMPLEMENTATIONS).default('auto'), {
    flag: '--http <implementation>',
    env: 'HTTP_IMPLEMENTATION',
    about: 'HTTP implementation: auto, uws or node',
  }),
  accessLog: setting(wholeNumber(0, 1_000_000).default(0), {
    flag: '--access-log <lines>',
    env: 'ACCESS_LOG',
    about:
      'Requests of the API that each of its threads logs in a second at most, by the visible digits of their key; 0 logs none',
  }),
  salesEmail: setting(someText().default('sales@example.com'), {
    flag: '--sales-email <address>',
    env: 'SALES_EMAIL',
    about: 'Contact that the API names where the plan does not include it',
  }),
  registry: setting(z.string().default(''), {
    flag: '--registry <file>',
    env: 'REGISTRY_FILE',
    about: 'YAML or JSON file that adds, overrides or disables platforms',
  }),
  logLevel: setting(oneOf(LOG_LEVELS).default('INFO'), {
    flag: '--log-level <level>',
    env: 'LOG_LEVEL',
    about: 'DEBUG, INFO, WARNING or ERROR',
  }),
})

export type ServiceSettings = z.output<typeof serviceSettings>

const LOOPBACK = /^(127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1|localhost)$/

/**
 * What must hold between settings.
 *
 * @throws Fault USAGE
 */
export function checkTogether(settings: ServiceSettings): ServiceSettings {
  if ((settings.tlsKey === '') !== (settings.tlsCertificate === '')) {
    throw new Fault('USAGE', '--tls-key and --tls-certificate belong together: set both or none')
  }
  if (!settings.plainHttp) return settings
  const loopback = {
    ...settings,
    apiAddress: loopbackOf(settings.apiAddress),
    ingestAddress: loopbackOf(settings.ingestAddress),
  }
  for (const [flag, address] of [
    ['--api-address', loopback.apiAddress],
    ['--ingest-address', loopback.ingestAddress],
  ] as const) {
    if (!LOOPBACK.test(address)) throw new Fault('USAGE', `--plain-http serves loopback only, found ${flag} ${address}`)
  }
  return loopback
}

/** The default address is every address; with plain HTTP it is loopback. */
function loopbackOf(address: string): string {
  return address === ANY_ADDRESS || address === ANY_IPV4_ADDRESS ? '127.0.0.1' : address
}

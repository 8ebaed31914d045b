import { endpointSettings, type Reach, type ReadyLines, readyLines } from './setup.ts'

/** What the instructions for a sender are filled in with. */
export interface SenderFacts {
  /** The monitoring token, or a placeholder for it. */
  readonly token: string
  /** The first digits of the token, which name it in commands. */
  readonly visible: string
  readonly organization: string
  readonly reach: Reach
  /** The port of syslog over UDP and TCP. */
  readonly plainPort: number
}

type Steps = ReadyLines['steps']

/** Something that sends events or logs, with instructions. */
export interface SenderKind {
  /** Part of an address: `pan-os`. */
  readonly id: string
  readonly group: SenderGroup
  readonly name: string
  /** How it reaches the service, and what it costs. One sentence without a full stop. */
  readonly about: string
  /**
   * The listener that it needs: HTTPS ingest, syslog over TLS, syslog over UDP or TCP, or none.
   */
  readonly needs: 'https' | 'tls' | 'plain' | 'none'
  /** The page in docs/ that explains more. A test compares the lines with it. */
  readonly guide: string
  readonly steps: (facts: SenderFacts) => Steps
}

export const SENDER_GROUPS = ['Collector', 'Log relay', 'Firewall', 'Proxy or gateway', 'DNS server', 'Files'] as const
type SenderGroup = (typeof SENDER_GROUPS)[number]

const PACKAGES = 'install/debian.md'
const FIREWALLS = 'collect/firewalls.md'
const PROXIES = 'collect/proxies.md'
const DNS = 'collect/dns-servers.md'

/** In the order in which they are offered. */
export const SENDERS: readonly SenderKind[] = [
  {
    ...{ id: 'collector', group: 'Collector', name: 'Debian or Ubuntu package', needs: 'https', guide: PACKAGES },
    about: 'Sees the names in DNS, TLS and QUIC on a gateway, mirror port or tap',
    steps: ({ token, reach }) => [
      { what: 'On the host that sees the traffic', lines: ['sudo apt install ./posture-collector_0.1.0_amd64.deb'] },
      ...readyLines(token, reach).collector.steps.slice(0, -1),
      {
        what: 'Check the settings. Every failure comes with a fix',
        lines: ['sudo posture-collector check --settings-file /etc/posture-collector/collector.env'],
      },
      ...readyLines(token, reach).collector.steps.slice(-1),
    ],
  },
  {
    ...{
      id: 'container',
      group: 'Collector',
      name: 'Container',
      needs: 'https',
      guide: 'install/containers.md',
    },
    about: 'The same in a container: non-root, with a read-only file system and host network',
    steps: ({ reach }) => [
      {
        what: 'Beside compose.yaml: paste the token, and press Enter and Ctrl-D',
        lines: ['sudo install --mode 400 --owner 10001 /dev/stdin token'],
      },
      { what: 'Write to collector.env, beside compose.yaml', lines: [...endpointSettings(reach), 'INTERFACE=eth0'] },
      {
        what: 'Check the settings, and start',
        lines: ['docker compose run --rm collector check', 'docker compose up --detach collector'],
      },
    ],
  },
  {
    ...{
      id: 'executable',
      group: 'Collector',
      name: 'Single executable',
      needs: 'https',
      guide: 'reference/packages.md',
    },
    about: 'One file for any Linux, x86_64 or ARM64',
    steps: ({ reach }) => [
      {
        what: 'Paste the token, and press Enter and Ctrl-D',
        lines: ['install --mode 600 /dev/stdin posture.token'],
      },
      {
        what: 'Write to collector.env. The collector opens the interface as root, and then becomes the owner of this directory',
        lines: ['SVC_TOKEN_FILE=posture.token', ...endpointSettings(reach), 'INTERFACE=eth0', 'OUTBOX=outbox'],
      },
      {
        what: 'Check the settings, and start',
        lines: [
          'sudo ./posture-collector-0.1.0-linux-x86_64 check --settings-file collector.env',
          'sudo ./posture-collector-0.1.0-linux-x86_64 run --settings-file collector.env',
        ],
      },
    ],
  },
  {
    ...{ id: 'rsyslog', group: 'Log relay', name: 'rsyslog', needs: 'tls', guide: 'collect/rsyslog.md' },
    about: 'Receives syslog from devices, adds the token, and keeps messages on disk while the service is away',
    steps: ({ token, reach }) => readyLines(token, reach).rsyslog.steps,
  },
  {
    ...{
      id: 'syslog-ng',
      group: 'Log relay',
      name: 'syslog-ng',
      needs: 'tls',
      guide: 'collect/syslog-ng.md',
    },
    about: 'The same with syslog-ng',
    steps: ({ token, reach }) => readyLines(token, reach).syslogNg.steps,
  },
  {
    ...{ id: 'pan-os', group: 'Firewall', name: 'PAN-OS', needs: 'plain', guide: FIREWALLS },
    about: 'The URL log, or the decryption log',
    steps: (facts) => [
      task('Apply a URL Filtering profile to the rules for outgoing traffic. Set its categories to alert'),
      task('Turn off “Log container page only”'),
      task(`Create a syslog server profile: ${serverText(facts)}, format BSD, default fields`),
      task('Create a log forwarding profile for the log type url, and attach it to the security rules'),
      bindStep(facts),
    ],
  },
  {
    ...{ id: 'fortigate', group: 'Firewall', name: 'FortiGate', needs: 'plain', guide: FIREWALLS },
    about: 'The logs of the web filter and of the DNS filter',
    steps: (facts) => [
      {
        what: 'Log all URLs and all DNS domains, in the profiles of the policies for outgoing traffic',
        lines: [
          ...['config webfilter profile', '    edit "default"', '        set log-all-url enable', '    next', 'end'],
          ...['config dnsfilter profile', '    edit "default"', '        set log-all-domain enable', '    next', 'end'],
        ],
      },
      {
        what: 'Send the log',
        lines: [
          'config log syslogd setting',
          '    set status enable',
          `    set server "${facts.reach.host}"`,
          '    set mode udp',
          `    set port ${facts.plainPort}`,
          '    set format default',
          'end',
        ],
      },
      bindStep(facts),
    ],
  },
  {
    ...{ id: 'pfsense', group: 'Firewall', name: 'pfSense and OPNsense', needs: 'plain', guide: FIREWALLS },
    about: 'The log of the DNS resolver. The log of the firewall names no hosts',
    steps: (facts) => [
      {
        what: 'Let Unbound log its queries. On pfSense, in the custom options of the DNS resolver; on OPNsense, in the advanced settings of Unbound DNS',
        lines: ['server:', 'log-queries: yes'],
      },
      task(
        `Turn on remote logging of DNS events (OPNsense: a target for the application unbound), ${serverText(facts)}`,
      ),
      bindStep(facts),
    ],
  },
  {
    ...{ id: 'firewall', group: 'Firewall', needs: 'plain', guide: FIREWALLS },
    name: 'SonicWall, Sophos, WatchGuard, Check Point, Meraki',
    about: 'Logs of the content filter, the web proxy, the DNS proxy or URLs',
    steps: (facts) => [
      task('Log what names hosts: content filter, web proxy, DNS proxy or URL events'),
      task(`Send it by syslog, ${serverText(facts)}`),
      bindStep(facts),
    ],
  },
  {
    ...{ id: 'squid', group: 'Proxy or gateway', name: 'Squid', needs: 'plain', guide: PROXIES },
    about: 'Its access log. A relay that reads the file loses nothing; this sends from Squid itself',
    steps: (facts) => [
      {
        what: 'Add to squid.conf. Without on-error=drop, Squid ends when it cannot log',
        lines: [`access_log udp://${facts.reach.host}:${facts.plainPort} logformat=squid on-error=drop`],
      },
      bindStep(facts),
    ],
  },
  {
    ...{ id: 'zscaler', group: 'Proxy or gateway', name: 'Zscaler', needs: 'plain', guide: PROXIES },
    about: 'A feed of web logs to a SIEM, over TCP to a port of its own',
    steps: (facts) => [
      task(
        'Add a feed of web logs, as CSV or as tab-separated key=value, over TCP. Set its time zone to GMT, and make the comma a feed escape character',
      ),
      {
        what: 'Open a port for the feed, in /etc/posture-service/service.env, and restart the service. Protect the path, for example by a VPN',
        lines: ['SYSLOG_TCP=514,5514'],
      },
      {
        what: 'Bind the port to the token, on the machine of the service',
        lines: [`${bindCommand(facts)} --port 5514`],
      },
    ],
  },
  {
    ...{ id: 'umbrella', group: 'Proxy or gateway', name: 'Umbrella', needs: 'none', guide: PROXIES },
    about: 'CSV files in a bucket, read from cron on the machine of the service',
    steps: () => fileSteps('dns-log.csv.gz'),
  },
  {
    ...{ id: 'bind', group: 'DNS server', name: 'BIND', needs: 'none', guide: DNS },
    about: 'The query log, in a file that a log relay reads',
    steps: () => [
      {
        what: 'Add to named.conf',
        lines: [
          'logging {',
          '  channel queries { file "/var/log/named/queries.log" versions 3 size 50m; severity info; print-time iso8601-utc; };',
          '  category queries { queries; };',
          '};',
        ],
      },
      task('Let rsyslog or syslog-ng read the file, as described in the guide'),
    ],
  },
  {
    ...{ id: 'unbound', group: 'DNS server', name: 'Unbound', needs: 'none', guide: DNS },
    about: 'Queries in the local syslog, which a log relay forwards',
    steps: () => [
      { what: 'Add to unbound.conf', lines: ['server:', '  log-queries: yes', '  use-syslog: yes'] },
      task('Forward the messages of the program unbound with rsyslog or syslog-ng, as described in the guide'),
    ],
  },
  {
    ...{ id: 'dnsmasq', group: 'DNS server', name: 'dnsmasq and Pi-hole', needs: 'none', guide: DNS },
    about: 'Queries in the local syslog, or in /var/log/pihole/pihole.log',
    steps: () => [
      { what: 'Add to dnsmasq.conf. Pi-hole does this already', lines: ['log-queries'] },
      task('Forward the messages, or the file, with rsyslog or syslog-ng, as described in the guide'),
    ],
  },
  {
    ...{ id: 'windows-dns', group: 'DNS server', name: 'Windows DNS server', needs: 'none', guide: DNS },
    about: 'The debug log, which is a file',
    steps: (facts) => [
      {
        what: 'Turn on debug logging of incoming queries, in PowerShell',
        lines: [
          'Set-DnsServerDiagnostics -EnableLoggingToFile $true -LogFilePath C:\\dnslog\\dns.log -Queries $true -QuestionTransactions $true -ReceivePackets $true -UdpPackets $true -TcpPackets $true',
        ],
      },
      {
        what: 'Set the time zone and the day order of its times, on the machine of the service',
        lines: [
          `sudo posture-admin token set ${facts.visible} --org ${shellWord(facts.organization)} --zone Europe/Berlin --date-order day-first`,
        ],
      },
      task(
        'Copy the file at intervals to the machine of the service. Each line counts once, even if the file has grown',
      ),
      ...fileSteps('dns.log'),
    ],
  },
  {
    ...{
      id: 'file',
      group: 'Files',
      name: 'Any log file or CSV export',
      needs: 'none',
      guide: 'collect/logs.md',
    },
    about: 'Read once, or from cron, on the machine of the service',
    steps: () => fileSteps('access.log'),
  },
]

function task(what: string): Steps[number] {
  return { what, lines: [] }
}

function serverText({ reach, plainPort }: SenderFacts): string {
  return `server ${reach.host}, UDP port ${plainPort}`
}

function bindCommand({ visible, organization }: SenderFacts): string {
  return `sudo posture-admin token bind ${visible} --org ${shellWord(organization)}`
}

/** Most devices cannot add a token to their messages. */
function bindStep(facts: SenderFacts): Steps[number] {
  return {
    what: 'The device cannot send the token. Bind its address to the token, on the machine of the service',
    lines: [`${bindCommand(facts)} --address 192.0.2.1`],
  }
}

function fileSteps(file: string): Steps {
  return [
    {
      what: 'On the machine of the service: paste the token, and press Enter and Ctrl-D',
      lines: ['install --mode 600 /dev/stdin branch.token'],
    },
    {
      what: 'Read the file. With --dry-run, the command shows what would be stored, and stores nothing',
      lines: [`sudo posture-admin ingest file --token-file branch.token ${file}`],
    },
  ]
}

/** The text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

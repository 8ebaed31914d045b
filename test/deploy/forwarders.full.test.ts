import t from 'tap'
import { FORWARDERS } from '../../deploy/docs/page-tables.ts'
import { SAMPLES } from '../../deploy/log-samples.ts'
import { RunningForwarder } from '../support/forwarders.ts'
import { matcher } from '../support/store.ts'
import { SyslogService, squid } from '../support/syslog-service.ts'

/** How often each sample is sent. */
const COPIES = 20
const TRANSPORTS = ['tls', 'tcp', 'udp'] as const

/** A sample line with the current time in UTC, because evidence that is too old is not shown. */
function today(line: string, now = new Date()): string {
  const iso = now.toISOString()
  const time = iso.slice(11, 19)
  return line
    .replaceAll('1795162502', String(Math.floor(now.getTime() / 1000)))
    .replaceAll(/2026-11-20T[\d:]{8}/g, iso.slice(0, 19))
    .replaceAll(/2026\/11\/20 [\d:]{8}/g, `${iso.slice(0, 10).replaceAll('-', '/')} ${time}`)
    .replaceAll(/Nov 20 [\d:]{8}/g, `${now.toUTCString().slice(8, 11)} ${iso.slice(8, 10)} ${time}`)
    .replaceAll(
      /20\/Nov\/2026:[\d:]{8} \+0100/g,
      `${now.toUTCString().slice(5, 16).replaceAll(' ', '/')}:${time} +0000`,
    )
}

function sample(device: string): (typeof SAMPLES)[number] {
  const found = SAMPLES.find((each) => each.device === device)
  if (found === undefined) throw new Error(`no sample of ${device}`)
  return found
}

function copies(...devices: readonly string[]): string[] {
  const lines = devices.map((device) => today(sample(device).lines.join('\n')))
  return Array.from({ length: COPIES }, () => lines).flat()
}

const SQUID = ['Squid, native', 'Squid, common'] as const
const BIND = ['BIND 9'] as const
const BY_UDP = ['PAN-OS, URL filtering', 'PAN-OS, decryption'] as const
const BY_TCP = ['FortiGate, web filter'] as const
const SENT = [...SQUID, ...BIND, ...BY_UDP, ...BY_TCP].map(sample)

/** Number of sent messages per key. */
function sums(keyOf: (sent: (typeof SAMPLES)[number]) => string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const sent of SENT) counts[keyOf(sent)] = (counts[keyOf(sent)] ?? 0) + COPIES
  return counts
}

for (const forwarder of FORWARDERS) {
  for (const kind of TRANSPORTS) {
    t.test(`${forwarder} over ${kind}: files and devices of several vendors arrive`, async (t) => {
      const service = await SyslogService.start(t)
      const relay = await RunningForwarder.start(
        t,
        service.directory,
        forwarder,
        [`service-${kind}`, 'files', 'devices'],
        {
          MONITORING_TOKEN: service.token,
          INGEST_HOST: 'localhost',
          INGEST_PORT: String(service.port(kind)),
          CA_FILE: service.certificateFile,
        },
      )
      relay.write('access.log', [...copies(...SQUID), squid('www.example.com')])
      relay.write('queries.log', copies(...BIND))
      // FortiGate's reliable mode uses octet counting, which syslog-ng's network() does not
      // support.
      await relay.sendTcp(copies(...BY_TCP), forwarder === 'rsyslog' ? 'counted' : 'lines')
      await relay.sendUdp(copies(...BY_UDP))
      const messages = SENT.length * COPIES + 1
      const counts = await service.settled(kind, messages)
      t.match(counts, { stored: messages - 1, unmatched: 1, unauthorized: 0 })

      t.same(
        Object.fromEntries(service.stored()),
        sums(({ host }) => host),
        'each name as often as it was sent',
      )
      const sources = await service.until('sources, which are written once a second', async () => {
        const rows = await service.admin('ingest', 'sources', '--org', 'Acme')
        return rows.reduce((sum, row) => sum + Number(row['matched']), 0) === messages - 1 ? rows : undefined
      })
      const formats: Record<string, number> = {}
      for (const row of sources) {
        t.match(row, { listener: kind, token_label: 'devices', unparsed: 0, understood_share: 1 })
        for (const [format, count] of Object.entries(row['formats'] as Record<string, number>)) {
          formats[format] = (formats[format] ?? 0) + count
        }
      }
      const expected = sums(({ format }) => format)
      t.same(formats, { ...expected, 'proxy-native': (expected['proxy-native'] ?? 0) + 1 }, 'formats are recognized')
      t.ok(
        sources.some(({ host }) => host === 'pa-1'),
        'the firewall that sends through the relay is a separate source',
      )

      t.match(await service.admin('scan', 'run', '--org', 'Acme'), [{ status: 'completed' }])
      const shown = await service.admin('scan', 'show', '--org', 'Acme')
      const platforms = SENT.map(({ host }) => matcher.match(host)?.platform.name)
      t.same(
        shown.map((row) => row['platform_name']).sort(),
        [...new Set(platforms)].sort(),
        'a scan shows the platforms',
      )
    })
  }
}

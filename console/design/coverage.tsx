import { percentText } from '../../engine/export/report/text.ts'
import { HIDDEN_COUNTER_NAMES, type HiddenCounter } from '../../engine/kernel/event/coverage-report.ts'
import type { CoverageJson } from '../../engine/scan/coverage.ts'
import { type ChartTone, Key, type Share, Shares } from './chart.tsx'
import { Card, countOf, Lines } from './parts.tsx'

interface HiddenTrafficProps {
  readonly coverage: CoverageJson
  readonly title?: string
}

const KIND_NAMES: Readonly<Record<HiddenCounter, string>> = {
  hellos_explained: 'Of the connections that hide their name, those whose name a DNS answer gave',
  doq_sessions: 'DNS over QUIC, as part of encrypted DNS',
  dnscrypt_sessions: 'DNSCrypt, as part of encrypted DNS',
  esp_sessions: 'IPsec',
  wireguard_sessions: 'WireGuard',
  openvpn_sessions: 'OpenVPN',
  tor_sessions: 'Tor, by its names',
  dtls_sessions: 'DTLS: calls and VPNs',
  ah_packets: 'IPsec authentication headers, which are read',
  macsec_packets: 'MACsec',
  unknown_ethertype_packets: 'Unknown link protocols',
}

/** The traffic that the sensors saw, and why they could not see the rest. */
export function HiddenTraffic({ coverage, title = 'What the sensors could not see' }: HiddenTrafficProps) {
  const { hidden, names_seen: seen } = coverage
  const rows: readonly (readonly [ChartTone, string, number, string])[] = [
    ['shadow', 'Encrypted Client Hello', hidden.ech, 'connection'],
    ['third', 'Encrypted DNS', hidden.encrypted_dns, 'session'],
    ['dot', 'Encrypted tunnels', hidden.tunnels, 'connection'],
    ['fourth', 'Connections without a name', hidden.no_name, 'connection'],
    ['rest', 'Incomplete connections', hidden.incomplete, 'connection'],
  ]
  const readable = Math.max(0, seen - hidden.ech)
  const all = Math.max(1, readable + rows.reduce((sum, [, , count]) => sum + count, 0))
  const parts: readonly Share[] = [
    { tone: 'approved', share: readable / all },
    ...rows.map(([tone, , count]) => ({ tone, share: count / all })),
  ]
  return (
    <Card title={title} note={`${percentText(1 - readable / all)} of names`}>
      <Shares parts={parts} label={`${percentText(readable / all)} of names were seen`} />
      <Lines
        rows={[
          ...rows.map(
            ([tone, what, count, unit]) =>
              [<Key tone={tone}>{what}</Key>, `${percentText(count / all)} · ${countOf(count, unit)}`] as const,
          ),
          ...HIDDEN_COUNTER_NAMES.filter((kind) => coverage.kinds[kind] > 0).map((kind) => {
            const unit = kind.endsWith('_packets') ? 'packet' : 'connection'
            return [KIND_NAMES[kind], countOf(coverage.kinds[kind], unit)] as const
          }),
          ['Packets lost or not decoded', countOf(hidden.packets_lost + hidden.undecodable, 'packet')],
        ]}
      />
    </Card>
  )
}

import t from 'tap'
import { PACKET_CLASS_NAMES, type PacketClassName } from '../../collector/batch/packet-class.ts'
import { coverageOf } from '../../collector/coverage.ts'
import { observe } from '../../collector/pipeline/observe.ts'
import type { CoverageCounters } from '../../engine/kernel/event/coverage-report.ts'
import { loadCatalog } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { type StatusFields, statusOf } from '../support/collector-status.ts'
import { counters } from '../support/coverage.ts'
import { REPOSITORY } from '../support/programs.ts'

const ROWS: readonly (readonly [name: string, status: StatusFields, found: Partial<CoverageCounters>])[] = [
  ['nothing', {}, {}],
  ['names', { names: 7, matched: 3, classes: { dnsQuery: 7 } }, { packets: 7, names: 7, names_matched: 3 }],
  [
    'hellos by how they ended',
    { counters: { helloName: 1, helloEch: 2, helloNoName: 3, helloIncomplete: 4, helloQuicUnknownVersion: 5 } },
    { hellos_named: 1, hellos_ech: 2, hellos_unnamed: 3, hellos_incomplete: 4, hellos_unknown_version: 5 },
  ],
  ['hidden queries', { counters: { dotSessions: 6, dohSessions: 7 } }, { dot_sessions: 6, doh_sessions: 7 }],
  [
    'tunnels and packets by kind',
    {
      counters: {
        espSessions: 1,
        wireguardSessions: 2,
        openvpnSessions: 3,
        torSessions: 4,
        dtlsSessions: 5,
        ahPackets: 6,
      },
      classes: { macsecEncrypted: 7, etherTypeUnknown: 8 },
    },
    {
      ...{ esp_sessions: 1, wireguard_sessions: 2, openvpn_sessions: 3, tor_sessions: 4, dtls_sessions: 5 },
      ...{ ah_packets: 6, macsec_packets: 7, unknown_ethertype_packets: 8, packets: 15, packets_undecodable: 15 },
    },
  ],
  [
    'losses at each place',
    { live: { dropped: { kernel: 1, pool: 20, unread: 300 } }, link: { missed: 4000 } },
    { packets_lost: 4321 },
  ],
  ['cut packets', { classes: { truncated: 5 } }, { packets: 5, packets_truncated: 5 }],
]
for (const [name, status, found] of ROWS) {
  t.test(name, async (t) => {
    t.same(coverageOf(statusOf(status)), counters(found))
  })
}

t.test('a capture file has no losses, and its packets are counted', async (t) => {
  const { observed } = statusOf({ classes: { dnsQuery: 2 } })
  t.same(coverageOf({ observed, live: undefined, link: undefined }), counters({ packets: 2 }))
})

t.test('a packet is undecodable by its class; classes without a name are not counted', async (t) => {
  const undecodable = PACKET_CLASS_NAMES.filter(
    (name) => coverageOf(statusOf({ classes: { [name]: 1 } })).packets_undecodable === 1,
  )
  const expected: PacketClassName[] = [
    ...(['linkUnsupported', 'ipMalformed', 'udpMalformed', 'dnsQuestionsOverLimit', 'dnsMalformed'] as const),
    ...(['tcpMalformed', 'clientHelloMalformed', 'quicUndecodable', 'nestedTooDeep', 'linkEncrypted'] as const),
    ...(['macsecEncrypted', 'etherTypeUnknown'] as const),
  ]
  t.same(undecodable, expected)
})

const CAPTURES: readonly (readonly [capture: string, found: Partial<CoverageCounters>])[] = [
  ['tls-encrypted-client-hello', { packets: 4, names: 1, hellos_ech: 1 }],
  ['tls-without-name', { hellos_unnamed: 2, names: 0 }],
  ['tls-never-complete', { hellos_incomplete: 1 }],
  ['quic-unknown-version', { hellos_unknown_version: 1 }],
]
for (const [capture, found] of CAPTURES) {
  t.test(`the capture's ${capture}`, async (t) => {
    const path = `${REPOSITORY}/test/captures/${capture}/input.pcap`
    const trie = compileTrie(loadCatalog().rules)
    const { counts, done } = await observe({ kind: 'file', path }, { trie, lanes: 1, onNames: () => {} })
    await done
    const coverage = coverageOf({ observed: counts, live: undefined, link: undefined })
    t.match(coverage, found)
    t.equal(coverage.packets, counts.frames)
  })
}

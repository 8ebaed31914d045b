import t from 'tap'
import { MessageReader } from '../../support/log-rows.ts'

const CONNECTION = 'ts uid id.orig_h id.orig_p id.resp_h id.resp_p proto'
const TIME = '1795162502.119318'
const ISO = '2026-11-20T08:15:02.119Z'
const PLACES = `${TIME} CHhAvVGS1DHFjwGM9 192.168.1.45 51234 198.51.100.20`

/** A log's columns and one of its rows, both separated by blanks here. */
type Log = readonly [fields: string, row: string]

const REQUEST = { verdict: 'event', host: 'claude.ai', client: '192.168.1.45', time: ISO }
const NO_REQUEST = { verdict: 'noDomain', host: '' }

/** Columns as in https://docs.zeek.org/en/master/script-reference/log-files.html. */
const REQUESTS: Readonly<Record<string, Log>> = {
  dns: [
    `${CONNECTION} trans_id rtt query qclass qclass_name qtype qtype_name rcode rcode_name answers`,
    `${PLACES} 53 udp 4711 0.02 claude.ai 1 C_INTERNET 1 A 0 NOERROR chatgpt.com`,
  ],
  ssl: [
    `${CONNECTION.slice(0, -6)} version cipher curve server_name resumed established subject issuer`,
    `${PLACES} 443 TLSv13 TLS_AES_128_GCM_SHA256 x25519 claude.ai F T CN=chatgpt.com CN=openai.com`,
  ],
  http: [
    `${CONNECTION.slice(0, -6)} trans_depth method host uri referrer version user_agent status_code username`,
    `${PLACES} 80 1 GET claude.ai:80 /new https://chatgpt.com/ 1.1 "Mozilla/5.0 200 jdoe`,
  ],
  quic: [
    `${CONNECTION.slice(0, -6)} version client_initial_dcid server_name client_protocol history`,
    `${PLACES} 443 1 9c6ea86ec3ee0b63 claude.ai h3 ISisH`,
  ],
}
const OTHERS: Readonly<Record<string, Log>> = {
  conn: [`${CONNECTION} service duration orig_bytes resp_bytes conn_state`, `${PLACES} 443 tcp ssl 1.5 517 4711 SF`],
  x509: [
    'ts fingerprint certificate.version certificate.subject certificate.issuer san.dns san.ip',
    `${TIME} a1b2 3 CN=claude.ai CN=CA claude.ai,chatgpt.com 192.0.2.45`,
  ],
  files: [
    'ts fuid tx_hosts rx_hosts conn_uids source depth analyzers mime_type filename',
    `${TIME} FMkioa222mEuM2RuQ9 203.0.113.9 192.0.2.45 CHhAvVGS1DHFjwGM9 HTTP 0 MD5 text/html claude.ai`,
  ],
  smtp: [
    `${CONNECTION.slice(0, -6)} trans_depth helo mailfrom rcptto subject path`,
    `${PLACES} 25 1 claude.ai a@openai.com b@claude.ai Hello 192.0.2.45`,
  ],
  dhcp: [
    'ts uids client_addr server_addr mac host_name client_fqdn domain requested_addr assigned_addr',
    `${TIME} CHhAvVGS1DHFjwGM9 192.0.2.45 192.0.2.1 02:00:5e:00:53:01 claude.ai claude.ai openai.com - 192.0.2.45`,
  ],
  ntlm: [
    `${CONNECTION.slice(0, -6)} username hostname domainname server_dns_computer_name success`,
    `${PLACES} 445 jdoe claude.ai openai.com dc1.openai.com T`,
  ],
  kerberos: [
    `${CONNECTION.slice(0, -6)} request_type client service success`,
    `${PLACES} 88 TGS jdoe/OPENAI.COM HTTP/claude.ai T`,
  ],
  rdp: [
    `${CONNECTION.slice(0, -6)} cookie result security_protocol client_name cert_type`,
    `${PLACES} 3389 jdoe encrypted HYBRID claude.ai RSA`,
  ],
  sip: [
    `${CONNECTION.slice(0, -6)} trans_depth method uri date request_from request_to`,
    `${PLACES} 5060 0 REGISTER sip:claude.ai - jdoe@claude.ai jdoe@claude.ai`,
  ],
  software: [
    'ts host host_p software_type name version.major unparsed_version',
    `${TIME} 192.0.2.45 80 HTTP::SERVER claude.ai 1 claude.ai/1.0`,
  ],
  known_hosts: ['ts host', `${TIME} 192.0.2.45`],
  known_services: ['ts host port_num port_proto service', `${TIME} 192.0.2.45 443 tcp claude.ai`],
  notice: [
    `${CONNECTION} note msg sub src dst p peer_descr actions`,
    `${PLACES} 443 tcp SSL::Invalid_Server_Cert failed CN=claude.ai 192.0.2.45 203.0.113.9 443 claude.ai Notice::LOG`,
  ],
  intel: [
    `${CONNECTION.slice(0, -6)} seen.indicator seen.indicator_type seen.where sources`,
    `${PLACES} 443 claude.ai Intel::DOMAIN SSL::IN_SERVER_NAME feed`,
  ],
  weird: [
    `${CONNECTION.slice(0, -6)} name addl notice peer`,
    `${PLACES} 53 dns_unmatched_reply claude.ai F chatgpt.com`,
  ],
  tunnel: [`${CONNECTION.slice(0, -6)} tunnel_type action`, `${PLACES} 3128 Tunnel::HTTP Tunnel::DISCOVER`],
  ldap_search: [
    `${CONNECTION.slice(0, -6)} message_id scope base_object filter`,
    `${PLACES} 389 1 tree dc=claude,dc=ai (host=claude.ai)`,
  ],
}

const LOGS = [
  ...Object.entries(REQUESTS).map(([name, log]) => [name, log, REQUEST] as const),
  ...Object.entries(OTHERS).map(([name, log]) => [name, log, NO_REQUEST] as const),
]

const header = (fields: string, separator = '\t'): string[] => [
  `#separator \\x${separator.charCodeAt(0).toString(16).padStart(2, '0')}`,
  ['#set_separator', ','].join(separator),
  ['#path', 'own'].join(separator),
  ['#open', '2026-11-20-08-15-00'].join(separator),
  ['#fields', ...fields.split(' ')].join(separator),
  ['#types', ...fields.split(' ').map(() => 'string')].join(separator),
]

for (const separator of ['\t', '|']) {
  t.test(`tables separated by ${JSON.stringify(separator)}`, async (t) => {
    for (const [name, [fields, row], expected] of LOGS) {
      const reader = new MessageReader()
      for (const directive of header(fields, separator))
        t.match(reader.read(directive), { verdict: 'skip', format: 'zeek' }, directive)
      for (let times = 0; times < 30; times++) {
        const read = reader.read(row.replaceAll(' ', separator))
        t.match(read, { format: 'zeek', ...expected }, name)
      }
      const end = reader.read(['#close', '2026-11-20-09-00-00'].join(separator))
      t.equal(end.verdict, 'skip')
    }
  })
}

t.test('JSON has the same verdicts', async (t) => {
  for (const [name, [fields, row], expected] of LOGS) {
    const cells = row.split(' ').map((cell) => (/^\d+(\.\d+)?$/.test(cell) ? Number(cell) : cell))
    const record = Object.fromEntries(fields.split(' ').map((field, index) => [field, cells[index]]))
    for (const shape of [record, { _path: name, _system_name: 'sensor.openai.com', ...record }]) {
      const read = new MessageReader().read(JSON.stringify(shape))
      if (expected.verdict === 'event') t.match(read, { format: 'json-logs', ...expected }, name)
      else t.not(read.verdict, 'event', JSON.stringify(shape))
    }
  }
})

t.test('no client of the organization requested the host', async (t) => {
  const from = '192.168.1.45'
  for (const name of ['ssl', 'http']) {
    const [fields, row] = REQUESTS[name] ?? ['', '']
    for (const other of [
      row.replace(from, '203.0.113.9').replace('198.51.100.20', '192.168.1.9'),
      row.replace(/ (443|80) /, ' 25 '),
      row.replace(from, '-'),
    ]) {
      const reader = new MessageReader()
      for (const directive of header(fields)) reader.read(directive)
      t.equal(reader.read(other.replaceAll(' ', '\t')).verdict, 'noDomain', other)
    }
  }
})

t.test('a truncated row names no client, and other formats are read in between', async (t) => {
  const [fields, row] = REQUESTS['dns'] ?? ['', '']
  const cells = row.split(' ')
  const reader = new MessageReader()
  for (const directive of header(fields)) reader.read(directive)
  for (let count = 2; count < cells.length; count++) {
    t.match(reader.read(cells.slice(0, count).join('\t')), { verdict: 'reject', reason: /#fields/ })
  }
  const squid = reader.read(
    `1795162502.119 318 192.0.2.45 TCP_TUNNEL/200 39 CONNECT claude.ai:443 - HIER_DIRECT/198.51.100.20 -`,
  )
  t.match(squid, { verdict: 'event', format: 'proxy-native' })
  t.equal(reader.read(cells.join('\t')).verdict, 'event')
})

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import type { BrowserTraffic } from '../support/client-browsers.ts'
import { type NameRow, nameRows } from '../support/client-rows.ts'
import { skipNamespaces as skip } from '../support/namespace.ts'

/**
 * Chromium and Firefox ESR open pages under 40 names of AI platforms: over TCP and QUIC, both with
 * the GREASE of Encrypted Client Hello, through squid and dante, and with a real Encrypted Client
 * Hello. The names in each browser's rows must be those that it asked.
 */
const TRAFFIC = fileURLToPath(new URL('../support/client-browsers.js', import.meta.url))
const folder = t.testdir()
let traffic: BrowserTraffic = { names: [], publicName: '', clients: [] }
let rows: readonly NameRow[] = []

t.before(async () => {
  if (skip !== false) return
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child']
  const { stdout } = await promisify(execFile)('unshare', [...namespaces, process.execPath, TRAFFIC, folder], {
    timeout: 290_000,
    maxBuffer: 64 * 1024 * 1024,
  })
  traffic = JSON.parse(stdout) as BrowserTraffic
  rows = await nameRows(`${folder}/traffic.pcap`)
})

const sorted = (names: Iterable<string>): string[] => [...new Set(names)].sort()

t.test('the names of each browser are what it asked', { skip }, async (t) => {
  t.equal(traffic.names.length, 40)
  t.equal(traffic.clients.length, 10)
  for (const { client, browser, kind, names, questions, served } of traffic.clients) {
    const title = `${browser}, ${kind}`
    const own = rows.filter((row) => row.client === client)
    const namesOf = (methods: readonly string[], via?: string): string[] =>
      sorted(own.filter((row) => methods.includes(row.method) && row.via === via).map(({ name }) => name))
    t.same(namesOf(['dns']), sorted(questions), `${title}: questions`)
    const hellos = own.filter((row) => ['tls', 'quic'].includes(row.method) && row.via === undefined)
    t.ok(
      hellos.every(({ ech }) => ech === true),
      `${title}: every ClientHello has Encrypted Client Hello or its GREASE`,
    )
    switch (kind) {
      case 'tcp':
        t.same(namesOf(['tls']), sorted(names), title)
        t.same(namesOf(['quic']), [], title)
        break
      case 'quic': {
        t.same(namesOf(['tls', 'quic']), sorted(names), title)
        t.ok(namesOf(['quic']).length > 0, title)
        const overQuic = served.filter((line) => line.startsWith('HTTP/3')).map((line) => line.split(' ')[1] ?? '')
        const missed = overQuic.filter((name) => !namesOf(['quic']).includes(name))
        t.same(missed, [], `${title}: ${overQuic.length} requests over HTTP/3`)
        break
      }
      case 'ech': {
        // Firefox connects without Encrypted Client Hello where the HTTPS record comes late.
        const hidden = namesOf(['tls_inferred'])
        const foreign = hidden.filter((name) => !names.includes(name))
        t.ok(hidden.length > 0, `${title}: the DNS answer names the hidden connection`)
        t.same(foreign, [], title)
        // The server cannot decrypt, so the browser connects again without.
        t.same(namesOf(['tls']), sorted([...names, traffic.publicName]), title)
        break
      }
      default: {
        // Browsers also ask for their own services.
        const asked = namesOf(['tls'], kind === 'squid' ? 'connect' : 'socks')
        t.same(
          asked.filter((name) => traffic.names.includes(name)),
          sorted(names),
          title,
        )
        t.same(hellos, [], `${title}: a hello with the requested name is not reported again`)
      }
    }
  }
})

t.test('nothing is invented', { skip }, async (t) => {
  const known = new Set(traffic.clients.map(({ client }) => client))
  t.same(
    rows.filter(({ client }) => !known.has(client)),
    [],
  )
})

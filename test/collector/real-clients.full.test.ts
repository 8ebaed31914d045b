import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import type { ProgramTraffic } from '../support/client-programs.ts'
import { differences, type NameRow, nameRows } from '../support/client-rows.ts'
import { skipNamespaces as skip } from '../support/namespace.ts'

/**
 * curl, openssl, Node, Python, Go and ngtcp2 request 40 names of AI platforms: directly, through
 * tinyproxy, squid and dante, and through HAProxy with PROXY headers. The rows of each client must
 * be exactly what it asked.
 */
const TRAFFIC = fileURLToPath(new URL('../support/client-programs.js', import.meta.url))
const folder = t.testdir()
const capture = `${folder}/traffic.pcap`
let traffic: ProgramTraffic = { loadBalancer: '', clients: [], absent: [] }

t.before(async () => {
  if (skip !== false) return
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child']
  const { stdout } = await promisify(execFile)('unshare', [...namespaces, process.execPath, TRAFFIC, folder], {
    timeout: 240_000,
    maxBuffer: 64 * 1024 * 1024,
  })
  traffic = JSON.parse(stdout) as ProgramTraffic
})

const lineOf = ({ method, name, via = '' }: NameRow): string => `${method} ${name} ${via}`.trim()

t.test('the rows of each client are what it asked', { skip }, async (t) => {
  for (const program of traffic.absent) t.comment(`${program} is not installed`)
  if (process.env['CI'] !== undefined) t.same(traffic.absent, [])
  const rows = await nameRows(capture, '--http-names', '--load-balancers', `${traffic.loadBalancer}/32`)
  t.ok(traffic.clients.length >= 21)
  for (const { client, by, rows: expected } of traffic.clients) {
    const found = rows.filter((row) => row.client === client).map(lineOf)
    t.ok(expected.length >= 40)
    t.same(differences(found, expected), [], by)
  }
  const known = new Set(traffic.clients.map(({ client }) => client))
  t.same(
    rows.filter(({ client }) => !known.has(client)),
    [],
    'nothing is invented',
  )
})

t.test('by default, plain HTTP is not read, and no load balancer is trusted', { skip }, async (t) => {
  const rows = await nameRows(capture)
  const vias = new Set(rows.map(({ via }) => via))
  t.same([...vias].sort(), ['connect', 'socks', undefined])
  const behind = traffic.clients.filter(({ by }) => by.includes('HAProxy'))
  t.equal(behind.length, 2)
  for (const address of [traffic.loadBalancer, ...behind.map(({ client }) => client)])
    t.equal(new Set(rows.filter(({ client }) => client === address).map(({ name }) => name)).size, 40, address)
})

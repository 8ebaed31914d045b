import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { provideCertificate } from '../../engine/http/certificate.ts'
import { run } from '../support/programs.ts'
import type { RealTraffic } from '../support/real-traffic.ts'

/**
 * Traffic of third-party programs, captured with tcpdump. posture-collector, tshark and the clients
 * must agree on the names and how often each occurred.
 */
const TRAFFIC = fileURLToPath(new URL('../support/real-traffic.js', import.meta.url))
// On a developer's machine, the tests are skipped with this reason. In CI nothing is skipped: the
// tests run, and fail without root.
const skip =
  process.getuid?.() === 0 || process.env['CI'] !== undefined ? false : 'needs root, for namespaces and tcpdump'

const runProgram = promisify(execFile)
const folder = t.testdir()
const capture = `${folder}/traffic.pcap`
let traffic: RealTraffic = { requested: [], absent: [] }

t.before(async () => {
  if (skip !== false) return
  const { keyFile, certificateFile } = await provideCertificate(`${folder}/tls`, undefined)
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child']
  const command = [process.execPath, TRAFFIC, folder, keyFile, certificateFile]
  traffic = JSON.parse(
    (await runProgram('unshare', [...namespaces, ...command], { timeout: 60_000 })).stdout,
  ) as RealTraffic
})

/** The expected "method name" lines, with repetitions. */
function expectedNames(): string[] {
  return traffic.requested.flatMap(({ method, names }) => names.map((name) => `${method} ${name}`)).sort()
}

t.test('every client sent its requests', { skip }, async (t) => {
  t.ok(expectedNames().length >= 25, `${expectedNames().length} names`)
  for (const program of traffic.absent) t.comment(`${program} is not installed: none of its packets are in the capture`)
  if (process.env['CI'] !== undefined) t.same(traffic.absent, [])
})

for (const lanes of ['0', '1', '2']) {
  t.test(`posture-collector finds every name with --decode-workers ${lanes}`, { skip }, async (t) => {
    const { status, stdout } = await run('collector', ['read', '--names', '--decode-workers', lanes, capture])
    t.equal(status, 0)
    const rows = stdout.split('\n').filter((line) => line !== '')
    const seen = rows.map((line) => JSON.parse(line) as { method: string; name: string })
    t.same(seen.map(({ method, name }) => `${method} ${name}`).sort(), expectedNames())
  })
}

t.test('tshark finds the same names', { skip }, async (t) => {
  const filter = 'dns.flags.response==0 || tls.handshake.type==1'
  const fields = ['frame.protocols', 'dns.qry.name', 'tls.handshake.extensions_server_name']
  const columns = ['-T', 'fields', '-E', 'aggregator= ', ...fields.flatMap((field) => ['-e', field])]
  const { stdout } = await runProgram('tshark', ['-n', '-r', capture, '-Y', filter, ...columns])
  const seen = stdout.split('\n').flatMap((line) => {
    const [protocols = '', questions = '', serverNames = ''] = line.split('\t')
    const kind = protocols.includes(':quic') ? 'quic' : 'tls'
    const rows = (method: string, names: string) =>
      names.split(' ').flatMap((name) => (name === '' ? [] : `${method} ${name.toLowerCase()}`))
    return [...rows('dns', questions), ...rows(kind, serverNames)]
  })
  t.same(seen.sort(), expectedNames())
})

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { provideCertificate } from '../../engine/http/certificate.ts'
import { run } from '../support/programs.ts'
import type { RealTraffic } from '../support/real-traffic.ts'

/**
 * Packets of programs that are not ours, captured by tcpdump: posture-collector, tshark and the clients themselves must agree on the
 * names, each as often as it was said.
 */
const TRAFFIC = fileURLToPath(new URL('../support/real-traffic.js', import.meta.url))
// On a developer's machine the reason is shown; in CI nothing is skipped: there the tests run, and fail where they cannot.
const skip =
  process.getuid?.() === 0 || process.env['CI'] !== undefined ? false : 'needs root, for namespaces and tcpdump'

const runProgram = promisify(execFile)
const folder = t.testdir()
const capture = `${folder}/traffic.pcap`
let traffic: RealTraffic = { asked: [], absent: [] }

t.before(async () => {
  if (skip !== false) return
  const { keyFile, certificateFile } = await provideCertificate(`${folder}/tls`, undefined)
  const namespaces = ['--net', '--mount', '--pid', '--fork', '--kill-child']
  const command = [process.execPath, TRAFFIC, folder, keyFile, certificateFile]
  traffic = JSON.parse(
    (await runProgram('unshare', [...namespaces, ...command], { timeout: 60_000 })).stdout,
  ) as RealTraffic
})

/** "method name", as often as it must be seen. */
function said(): string[] {
  return traffic.asked.flatMap(({ method, names }) => names.map((name) => `${method} ${name}`)).sort()
}

t.test('every client did what it was asked to', { skip }, async (t) => {
  t.ok(said().length >= 25, `${said().length} names`)
  for (const program of traffic.absent) t.comment(`${program} is not installed: none of its packets are in the capture`)
  if (process.env['CI'] !== undefined) t.same(traffic.absent, [])
})

for (const lanes of ['1', '2']) {
  t.test(`posture-collector sees what was said, with ${lanes} decode workers`, { skip }, async (t) => {
    const { status, stdout } = await run('collector', ['read', '--names', '--decode-workers', lanes, capture])
    t.equal(status, 0)
    const rows = stdout.split('\n').filter((line) => line !== '')
    const seen = rows.map((line) => JSON.parse(line) as { method: string; name: string })
    t.same(seen.map(({ method, name }) => `${method} ${name}`).sort(), said())
  })
}

t.test('tshark sees the same', { skip }, async (t) => {
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
  t.same(seen.sort(), said())
})

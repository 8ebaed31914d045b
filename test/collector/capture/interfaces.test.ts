import { spawnSync } from 'node:child_process'
import t from 'tap'
import { noSuchInterface } from '../../../collector/capture/interfaces.ts'
import { ip, namespace, skipNamespaces } from '../../support/namespace.ts'
import { jsonLines, PROGRAMS, run } from '../../support/programs.ts'

const NO_ORGANIZATION = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups']

t.test('--list-interfaces lists interfaces and their states for any user', { skip: skipNamespaces }, async (t) => {
  const inside = namespace(t, `spsifs${process.pid}`)
  const link = (...words: string[]) => ip(...inside('ip', 'link', ...words))
  link('add', 'near', 'type', 'veth', 'peer', 'name', 'far')
  link('set', 'near', 'up')
  link('add', 'wired', 'type', 'veth', 'peer', 'name', 'other')
  link('set', 'wired', 'up')
  link('set', 'other', 'up')
  ip(...inside('ip', 'address', 'add', '192.0.2.7/24', 'dev', 'wired'))
  link('add', 'bridge7', 'type', 'bridge')
  const listing = [process.execPath, PROGRAMS.collector, '--list-interfaces']
  const { status, stdout, stderr } = spawnSync('ip', inside(...NO_ORGANIZATION, ...listing), {
    encoding: 'utf8',
    env: {},
  })
  t.equal(status, 0, stderr)
  t.equal(stderr, '')
  const rows = jsonLines<{ name: string; addresses: string[] }>(stdout)
  const byName = new Map(rows.map((row) => [row.name, row]))
  t.match(byName.get('lo'), { state: 'down', kind: 'loopback' })
  t.match(byName.get('near'), { state: 'no carrier', kind: 'ethernet', received_packets: 0 })
  t.match(byName.get('far'), { state: 'down' })
  t.match(byName.get('wired'), { state: 'up', kind: 'ethernet' })
  t.ok(byName.get('wired')?.addresses.includes('192.0.2.7'))
  t.match(byName.get('bridge7'), { state: 'down', kind: 'bridge' })
  t.match(rows.at(-1), { name: 'any', state: 'up' })
})

t.test('--list-interfaces is an option of run, the default command, and needs no token', async (t) => {
  for (const parameters of [['--list-interfaces'], ['run', '--list-interfaces', '--log-level', 'ERROR']]) {
    const { status, stdout, stderr } = await run('collector', parameters)
    t.match({ status, stderr }, { status: 0, stderr: '' })
    t.match(stdout, /^\{"name":"lo","state":"up","kind":"loopback","addresses":\["127\.0\.0\.1"/m)
    t.match(stdout, /\{"name":"any",[^\n]*\n$/)
  }
})

const MANY = Array.from({ length: 300 }, (_interface, index) => `veth${String(index).padStart(3, '0')}`)
const MISTYPED: readonly { name: string; wrong: string; names: readonly string[]; expected: RegExp }[] = [
  {
    name: 'two letters exchanged',
    wrong: 'esn3',
    names: ['eth0', 'lo', 'ens3'],
    expected: /^esn3: no such interface; available: ens3, eth0, lo \(posture-collector --list-interfaces\)$/,
  },
  {
    name: 'no similar name: all have the same distance',
    wrong: 'eth0',
    names: ['ens3', 'lo'],
    expected: /available: ens3, lo \(/,
  },
  {
    name: 'a container host with many interfaces',
    wrong: 'eth',
    names: [...MANY, 'eth0'],
    expected: /available: eth0, (veth\d{3}, ){6}veth\d{3}, and 293 more \(/,
  },
]
for (const { name, wrong, names, expected } of MISTYPED) {
  t.test(`an unknown interface: ${name}`, async (t) => t.match(noSuchInterface(wrong, names), expected))
}

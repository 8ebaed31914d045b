import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { BlockListFormat } from '../../../engine/export/block-list-text.ts'
import { answersOf, check, ENVIRONMENT, ROOT, start } from '../../support/dns-programs.ts'
import { freePort } from '../../support/free-port.ts'
import { admin, REPOSITORY, run } from '../../support/programs.ts'
import { until } from '../../support/wait.ts'

/*
 * Real programs load the lists of the built-in registry, and block a listed name and not an
 * approved one.
 */

const LISTED = ['deepseek.com', 'chat.deepseek.com', 'a.b.deepseek.com']
/** Below openai.com, which is a platform that nobody approved. */
const APPROVED = ['chat.openai.com', 'chatgpt.com', 'www.chatgpt.com', 'a.sora.chatgpt.com']
/** One listed name, whose parent and whose names below are of an approved platform. */
const EXACT = 'sora.chatgpt.com'
/** The domains in which the local servers have addresses, listed ones and others. */
const DOMAINS = ['deepseek.com', 'chatgpt.com', 'openai.com']
const ADDRESS = '192.0.2.1'

async function listFor(t: Test, format: BlockListFormat): Promise<{ directory: string; file: string }> {
  const directory = t.testdir()
  // The servers drop root.
  for (let path = directory; path.startsWith(REPOSITORY); path = join(path, '..')) chmodSync(path, 0o755)
  chmodSync(directory, 0o1777)
  const data = ['--data-dir', join(directory, 'data')]
  await admin('organization', 'create', 'Acme', '--domain', 'acme.example', ...data)
  await admin('approval', 'add', 'ChatGPT', ...data)
  const file = join(directory, `list.${format}`)
  const { status, stderr } = await run('admin', [
    'blocklist',
    '--not-approved',
    '--format',
    format,
    '--out',
    file,
    ...data,
  ])
  if (status !== 0) throw new Error(stderr)
  return { directory, file }
}

const EXPECTED = {
  [EXACT]: 'NXDOMAIN',
  ...Object.fromEntries(LISTED.map((name) => [name, 'NXDOMAIN'])),
  ...Object.fromEntries(APPROVED.map((name) => [name, ADDRESS])),
}

t.test('BIND, with a response policy zone', async (t) => {
  const { directory, file } = await listFor(t, 'rpz')
  t.match(check('usr/bin/named-checkzone', ['posture.rpz', file]), /OK/)
  const zone = join(directory, 'zone')
  const records = [
    '$TTL 60',
    '@ IN SOA localhost. root.localhost. 1 60 60 60 60',
    '@ IN NS localhost.',
    `@ IN A ${ADDRESS}`,
  ]
  writeFileSync(zone, [...records, `* IN A ${ADDRESS}`, ''].join('\n'))
  const port = await freePort()
  const config = join(directory, 'named.conf')
  writeFileSync(
    config,
    `options { directory "${directory}"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; recursion yes;
  allow-query { any; }; allow-recursion { any; }; dnssec-validation no; pid-file none; session-keyfile none;
  response-policy { zone "posture.rpz"; } qname-wait-recurse no; };
controls { };
zone "posture.rpz" { type primary; file "${file}"; allow-query { none; }; };
${DOMAINS.map((domain) => `zone "${domain}" { type primary; file "${zone}"; };`).join('\n')}\n`,
  )
  check('usr/bin/named-checkconf', [config])
  const named = start(t, 'usr/sbin/named', ['-g', '-c', config, '-n', '1'])
  // BIND answers before it applies the policy zone.
  await until('the policy zone is applied', () => /rpz: posture\.rpz: reload done/.test(named.output()))
  t.same(await answersOf(named, port, Object.keys(EXPECTED)), EXPECTED)
})

t.test('Unbound', async (t) => {
  const { directory, file } = await listFor(t, 'unbound')
  const port = await freePort()
  const config = join(directory, 'unbound.conf')
  const addresses = APPROVED.map((name) => `local-data: "${name}. A ${ADDRESS}"`).join('\n  ')
  writeFileSync(
    config,
    `server:
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  interface: 127.0.0.1@${port}
  access-control: 127.0.0.0/8 allow
  ${addresses}
include: "${file}"
`,
  )
  t.match(check('usr/sbin/unbound-checkconf', [config]), /no errors/)
  const unbound = start(t, 'usr/sbin/unbound', ['-d', '-c', config])
  t.same(await answersOf(unbound, port, Object.keys(EXPECTED)), { ...EXPECTED, [EXACT]: '0.0.0.0' })
})

t.test('dnsmasq', async (t) => {
  const { file } = await listFor(t, 'dnsmasq')
  check('usr/sbin/dnsmasq', ['--test', `--conf-file=${file}`])
  const port = await freePort()
  const dnsmasq = start(t, 'usr/sbin/dnsmasq', [
    ...['--keep-in-foreground', `--conf-file=${file}`, '--no-resolv', '--no-hosts', '--pid-file=', '--user=root'],
    ...['--listen-address=127.0.0.1', '--bind-interfaces', `--port=${port}`],
    ...APPROVED.map((name) => `--address=/${name}/${ADDRESS}`),
  ])
  t.same(await answersOf(dnsmasq, port, Object.keys(EXPECTED)), { ...EXPECTED, [EXACT]: '0.0.0.0' })
})

t.test('a hosts file, read by dnsmasq', async (t) => {
  const { file } = await listFor(t, 'hosts')
  const port = await freePort()
  const dnsmasq = start(t, 'usr/sbin/dnsmasq', [
    ...['--keep-in-foreground', '--conf-file=/dev/null', '--no-resolv', `--addn-hosts=${file}`, '--no-hosts'],
    ...['--pid-file=', '--user=root', '--listen-address=127.0.0.1', '--bind-interfaces', `--port=${port}`],
  ])
  t.same(await answersOf(dnsmasq, port, ['deepseek.com', 'www.deepseek.com', 'chatgpt.com']), {
    'deepseek.com': '0.0.0.0',
    'www.deepseek.com': '0.0.0.0',
    'chatgpt.com': 'REFUSED',
  })
})

t.test('Squid', async (t) => {
  const { directory, file } = await listFor(t, 'squid')
  const port = await freePort()
  const config = join(directory, 'squid.conf')
  mkdirSync(join(directory, 'cache'), { mode: 0o777 })
  writeFileSync(
    config,
    `acl posture dstdomain "${file}"
http_access deny posture
http_access allow all
http_port 127.0.0.1:${port}
pid_filename ${directory}/squid.pid
cache_log ${directory}/cache.log
coredump_dir ${directory}
access_log none
cache deny all
pinger_enable off
dns_nameservers 127.0.0.1
dns_timeout 1 second
unlinkd_program /bin/true
mime_table ${ROOT}/usr/share/squid/mime.conf
icon_directory ${ROOT}/usr/share/squid/icons
error_directory ${ROOT}/usr/share/squid-langpack/templates
`,
  )
  const parsed = spawn(join(ROOT, 'usr/sbin/squid'), ['-k', 'parse', '-f', config], { env: ENVIRONMENT })
  let output = ''
  parsed.stderr.on('data', (chunk) => {
    output += String(chunk)
  })
  const [status] = await once(parsed, 'exit')
  t.equal(status, 0)
  t.notMatch(output, /ERROR|WARNING: .*subdomain|FATAL|Bungled/)
  const squid = start(t, 'usr/sbin/squid', ['-N', '-f', config])
  const connect = (name: string) => {
    return new Promise<number | undefined>((resolve) => {
      const asked = httpRequest({ host: '127.0.0.1', port, method: 'CONNECT', path: `${name}:443` })
      asked.on('connect', (response, socket) => {
        socket.destroy()
        resolve(response.statusCode)
      })
      asked.on('error', () => resolve(undefined)).end()
    })
  }
  const status403 = await until('Squid answers', () => {
    if (squid.child.exitCode !== null) throw new Error(squid.output())
    return connect('chat.deepseek.com')
  })
  t.equal(status403, 403)
  t.equal(await connect('deepseek.com'), 403)
  t.equal(await connect(EXACT), 403)
  t.not(await connect('a.sora.chatgpt.com'), 403, 'only the name itself')
  t.not(await connect('chatgpt.com'), 403, 'not denied, only without a DNS server')
})

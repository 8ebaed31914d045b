// Set-up before `npm start`, `npm test` and `npm run test:full`: dependencies, system packages,
// build. Plain JavaScript, because it runs before there is a TypeScript compiler. Skips everything
// that is already in place. With --debian SUITE it only creates a small Debian of the full suite,
// which test/run.ts does beside the first tests.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { build, isBuilt } from './build.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
/** Contains the hash of the lock file from which node_modules was installed. */
const INSTALLED_LOCK = join(root, 'node_modules/.installed-lock')
const PCAP_HEADERS = ['/usr/include/pcap/pcap.h', '/usr/local/include/pcap/pcap.h']
const PCAP_HINT = 'libpcap-dev (Debian, Ubuntu, Alpine) or libpcap-devel (Fedora, RHEL, SUSE)'
const NODE_MIN = [20, 19]
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024
/** Lines of a failed command that are printed. */
const LAST_LINES = 5
/** The output of the last attempt. */
let output = ''
/** The commands that `npm test` calls, with their Debian packages. */
const TEST_COMMANDS = {
  faketime: 'faketime',
  ip: 'iproute2',
  openssl: 'openssl',
  setpriv: 'util-linux',
  tcpdump: 'tcpdump',
  zstd: 'zstd',
}
/** The additional commands of `npm run test:full`. */
const FULL_TEST_COMMANDS = {
  'aarch64-linux-gnu-g++': 'g++-aarch64-linux-gnu',
  bison: 'bison',
  bwrap: 'bubblewrap',
  chromium: 'chromium',
  curl: 'curl',
  'firefox-esr': 'firefox-esr',
  fish: 'fish',
  flex: 'flex',
  groff: 'groff',
  jq: 'jq',
  loggen: 'syslog-ng-core',
  logger: 'bsdutils',
  mandoc: 'mandoc',
  'mkfs.ext4': 'e2fsprogs',
  perl: 'perl-base',
  'qemu-aarch64-static': 'qemu-user-static',
  runc: 'runc',
  slowhttptest: 'slowhttptest',
  sslscan: 'sslscan',
  'systemd-analyze': 'systemd',
  'systemd-nspawn': 'systemd-container',
  tcpreplay: 'tcpreplay',
  tshark: 'tshark',
  wrk: 'wrk',
  xz: 'xz-utils',
  zsh: 'zsh',
}
/**
 * Commands that not every distribution has. Tests without their command are skipped with the
 * reason.
 */
const OPTIONAL_TEST_COMMANDS = { gtlsclient: 'ngtcp2-client' }
/**
 * Packages that are only extracted to a folder of the cache, because installing one would start a
 * server or remove syslog-ng: each folder's last file, and its packages with their libraries first,
 * as far as a small Debian does not have them.
 */
const UNPACKED = {
  rsyslog: ['usr/sbin/rsyslogd', 'rsyslog-gnutls libestr0 libfastjson4 rsyslog'],
  nginx: ['usr/sbin/nginx', 'nginx'],
  haproxy: ['usr/sbin/haproxy', 'liblua5.3-0 libopentracing1 libopentracing-c-wrapper0 haproxy'],
  // Load block lists.
  blockers: [
    'usr/sbin/squid',
    'libjemalloc2 liblmdb0 libfstrm0 libprotobuf-c1 libmaxminddb0 bind9-libs bind9-utils libnfnetlink0 libnetfilter-conntrack3 libnftnl11 libnftables1 libtdb1 libltdl7 libecap3 bind9 unbound dnsmasq-base squid-langpack squid-common squid',
  ],
  prometheus: ['usr/bin/promtool', 'prometheus'],
  // Of Podman, only the file with the allowed system calls of a container (test/support/seccomp.ts).
  containers: ['usr/share/containers', 'golang-github-containers-common'],
  // Servers and proxies between which real clients connect (test/support/client-network.ts).
  clients: ['usr/bin/caddy', 'libwrap0 dante-server tinyproxy-bin caddy'],
}
/**
 * Debian 12 has NATS 2.9, whose streams lose acknowledged messages in a power failure
 * (docs/design/decisions.md), so the server comes from Debian unstable.
 */
const NATS_ROOT = join(root, 'node_modules/.cache/nats')
const NATS_SERVER = join(NATS_ROOT, 'usr/sbin/nats-server')
const NATS_VERSION_MIN = [2, 15]
/** The version in use, as the server prints it. */
const NATS_VERSION_FILE = join(NATS_ROOT, 'version')
const DEBIAN_KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
/**
 * Minimal Debian systems: packages and images are tested in the first, uWebSockets.js in the
 * second, with the programs of its tests. `debootstrap` creates them as root.
 */
const DEBIAN_FOLDERS = { bookworm: 'debian', trixie: 'debian-13' }
const DEBIAN_PACKAGES = { bookworm: [], trixie: ['--include=openssl,slowhttptest,sslscan,zstd'] }
const DEBIAN_MIRROR = 'http://deb.debian.org/debian'

if (process.argv.includes('--debian')) {
  if (isDebianRoot()) makeDebian(process.argv.at(-1))
  process.exit()
}
const forFullSuite = process.argv.includes('--full')
const forTests = forFullSuite || process.argv.includes('--test')

checkNode()
provideSystemPackages()
if (readIfThere(INSTALLED_LOCK) !== lockHash()) installDependencies()
if (!existsSync(join(root, 'node_modules/pcap/build/Release/pcap_binding.node'))) {
  print('building the pcap addon')
  run('npm', ['rebuild', 'pcap', '--loglevel=error'])
}
if (forFullSuite) providePeers()
if (!isBuilt()) {
  print('building')
  if (!build()) fail('the build failed')
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  if (major < NODE_MIN[0] || (major === NODE_MIN[0] && minor < NODE_MIN[1])) {
    fail(`Node ${NODE_MIN.join('.')} or later is needed, this is ${process.versions.node}`)
  }
}

function installDependencies() {
  print('installing dependencies')
  // Not npm ci, which refuses a lock file without the optional packages of other platforms. Some
  // registries omit them.
  run('npm', ['install', '--no-save', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'])
  writeFileSync(INSTALLED_LOCK, lockHash())
}

/** One call of apt-get. The pcap addon is compiled on this machine and needs libpcap's headers. */
function provideSystemPackages() {
  const missing = [
    ...(forTests ? packagesOfMissing(TEST_COMMANDS) : []),
    ...(forFullSuite ? packagesOfMissing(FULL_TEST_COMMANDS) : []),
  ]
  const lacksHeaders = !PCAP_HEADERS.some(existsSync)
  const hints = [...missing, ...(lacksHeaders ? [PCAP_HINT] : [])]
  if (lacksHeaders) missing.push('libpcap-dev')
  if (missing.length > 0) installPackages(missing, hints.join(', '))
}

/** Servers and systems that only the full suite uses. */
function providePeers() {
  for (const [name, [file, packages]] of Object.entries(UNPACKED)) {
    const folder = join(root, 'node_modules/.cache', name)
    if (!existsSync(join(folder, file))) unpack(packages.split(' '), folder)
  }
  if (!existsSync(NATS_VERSION_FILE)) provideNats()
  if (!isDebianRoot()) return
  if (!onPath('debootstrap')) installPackages(['debootstrap'], 'debootstrap')
  for (const name of packagesOfMissing(OPTIONAL_TEST_COMMANDS)) {
    print(`installing ${name}`)
    if (!tryInstall([name])) print(`${name} is not available; tests that need it are skipped`)
  }
}

/** Unpacks NATS with an apt configuration of its own, so that the machine's remains as it is. */
function provideNats() {
  print('unpacking nats-server')
  const apt = join(NATS_ROOT, 'apt')
  for (const folder of ['lists/partial', 'cache/archives/partial', 'packages'])
    mkdirSync(join(apt, folder), { recursive: true })
  writeFileSync(join(apt, 'sid.list'), `deb [signed-by=${DEBIAN_KEYRING}] ${debianMirror()} sid main\n`)
  const options = [
    ...['-qq', '-o', `Dir::Etc::SourceList=${join(apt, 'sid.list')}`, '-o', 'Dir::Etc::SourceParts=-'],
    ...['-o', `Dir::State::Lists=${join(apt, 'lists')}`, '-o', `Dir::Cache=${join(apt, 'cache')}`],
  ]
  const downloads = join(apt, 'packages')
  const downloaded =
    attempt('apt-get', ['update', ...options]) && attempt('apt-get', ['download', ...options, 'nats-server'], downloads)
  if (!downloaded)
    fail(`${lastLines()}\ncannot download nats-server from Debian unstable; check apt-get update, then run this again`)
  for (const file of readdirSync(downloads)) run('dpkg', ['-x', join(downloads, file), NATS_ROOT])
  rmSync(apt, { recursive: true })
  const version = spawnSync(NATS_SERVER, ['--version'], { encoding: 'utf8' }).stdout?.trim() ?? ''
  const [major = 0, minor = 0] = (/v(\d+)\.(\d+)/.exec(version) ?? []).slice(1).map(Number)
  if (major < NATS_VERSION_MIN[0] || (major === NATS_VERSION_MIN[0] && minor < NATS_VERSION_MIN[1])) {
    fail(`nats-server ${NATS_VERSION_MIN.join('.')} or later is needed, found ${version}`)
  }
  print(version)
  writeFileSync(NATS_VERSION_FILE, `${version}\n`)
}

/** The mirror from which this machine has its Debian packages. */
function debianMirror() {
  const targets = ['indextargets', '--format', '$(LABEL) $(COMPONENT) $(REPO_URI)', 'Created-By: Packages']
  const { stdout } = spawnSync('apt-get', targets, { encoding: 'utf8' })
  return /^Debian main (\S+)$/m.exec(stdout ?? '')?.[1] ?? DEBIAN_MIRROR
}

/**
 * Created under a temporary name, so that an interrupted creation is not mistaken for a complete
 * one.
 */
function makeDebian(suite) {
  const folder = join(root, 'node_modules/.cache', DEBIAN_FOLDERS[suite])
  if (existsSync(folder)) return
  print(`creating a minimal Debian (${suite})`)
  const part = `${folder}.part`
  rmSync(part, { recursive: true, force: true })
  mkdirSync(part, { recursive: true })
  if (!attempt('debootstrap', ['--variant=minbase', ...DEBIAN_PACKAGES[suite], suite, part, DEBIAN_MIRROR])) {
    fail(`debootstrap ${suite} failed; ${join(part, 'debootstrap/debootstrap.log')} says why`)
  }
  renameSync(part, folder)
}

function isDebianRoot() {
  return process.getuid?.() === 0 && onPath('apt-get')
}

function packagesOfMissing(commands) {
  return Object.entries(commands)
    .filter(([command]) => !onPath(command))
    .map(([, name]) => name)
}

function installPackages(packages, hint) {
  if (!isDebianRoot()) fail(`install ${hint}, then run this again`)
  print(`installing ${packages.join(', ')}`)
  if (!tryInstall(packages)) fail(`${lastLines()}\ninstall ${hint}, then run this again`)
}

function tryInstall(packages) {
  // --no-remove: syslog-ng and rsyslog exclude each other, and the machine keeps the installed one.
  const install = ['apt-get', ['install', '-y', '-qq', '--no-install-recommends', '--no-remove', ...packages]]
  if (attempt(...install)) return true
  // The package lists of a new machine are empty or old.
  attempt('apt-get', ['update', '-qq'])
  return attempt(...install)
}

/** The last package is extracted last, so that an interrupted extraction is repeated. */
function unpack(packages, folder) {
  const names = packages.join(', ')
  if (!onPath('apt-get')) fail(`tests need the Debian packages ${names}, which are unpacked by apt-get and dpkg`)
  print(`unpacking ${packages.at(-1)}`)
  const downloads = join(folder, 'packages')
  mkdirSync(downloads, { recursive: true })
  const download = ['apt-get', ['download', '-qq', ...packages], downloads]
  if (!attempt(...download)) {
    attempt('apt-get', ['update', '-qq'])
    if (!attempt(...download))
      fail(`${lastLines()}\ncannot download ${names}; check apt-get update, then run this again`)
  }
  const files = readdirSync(downloads)
  for (const each of packages) {
    for (const file of files.filter((name) => name.startsWith(`${each}_`)))
      run('dpkg', ['-x', join(downloads, file), folder])
  }
}

function lockHash() {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
}

function readIfThere(file) {
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

function onPath(command) {
  return (process.env.PATH ?? '').split(':').some((directory) => existsSync(join(directory, command)))
}

function attempt(command, parameters, directory = root) {
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
  const { status, stdout, stderr, error } = spawnSync(command, parameters, {
    cwd: directory,
    encoding: 'utf8',
    env: environment,
    maxBuffer: OUTPUT_BYTES_MAX,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  output = error === undefined ? `${stdout}${stderr}` : error.message
  return status === 0
}

/** What the last attempt says about its failure, such as who holds the lock of apt. */
function lastLines() {
  return output.trim().split('\n').slice(-LAST_LINES).join('\n')
}

function run(command, parameters) {
  const { status } = spawnSync(command, parameters, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) fail(`${command} ${parameters.join(' ')} failed`)
}

function print(text) {
  process.stderr.write(`set-up: ${text}\n`)
}

function fail(text) {
  process.stderr.write(`set-up: ${text}\n`)
  process.exit(1)
}

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SERVICE } from '../release/programs.ts'

/*
 * A machine for the commands of one page: Linux namespaces with their own network, host name,
 * process IDs and OWN_DIRECTORIES. Programs can use their default ports and directories, and
 * nothing of the host changes. eth0 is one end of a veth pair; `replay` sends the demo capture from
 * the other end, in a network of its own. Requires root, iproute2, tcpreplay, curl and jq.
 */
export const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url))
const PROGRAMS = {
  'posture-collector': join(REPOSITORY, 'dist/collector/main.js'),
  'posture-service': join(REPOSITORY, 'dist/api/main.js'),
  'posture-admin': join(REPOSITORY, 'dist/engine/admin/main.js'),
} as const
const DEMO_CAPTURE = join(REPOSITORY, 'test/captures/demo/input.pcap')
/** `npm run test:full` unpacks the package here. */
const PROMETHEUS = join(REPOSITORY, 'node_modules/.cache/prometheus/usr/bin')
const REGISTRY_UPDATE = join(REPOSITORY, 'dist/deploy/docs/registry-update.js')
const RELEASE = join(REPOSITORY, 'dist/deploy/release')
const RECEIVER = join(REPOSITORY, 'dist/deploy/docs/receiver.js')
/** The directory in which commands run: a clone of the repository. */
const WORK = '/home/alice/posture'
const COMMAND_MS_MAX = 60_000
/** Directories of the sandbox that replace those of the host. /etc begins as a copy. */
const OWN_DIRECTORIES = ['/etc', '/var', '/home', '/mnt', '/usr/share/doc', '/usr/local/lib']
/** Of the package of the service. */
const EXAMPLES = '/usr/share/doc/posture-service/examples'
const DIRECTORIES = [
  ...[WORK, EXAMPLES, '/usr/local/lib', '/mnt/backups', '/etc/posture-collector', '/etc/prometheus'],
  ...['/var/tmp', '/var/log', '/var/lib'],
]

/**
 * Commands that pages use, by name. Container engines run the program of the container outside of
 * a container, which prints the same. In a clone, npx runs the same programs, but each call takes
 * half a second longer. start-collector starts the installed collector, sends it the demo capture
 * and waits until the service has stored all matches. week-ago runs a program with the time of a
 * week ago. start-receiver starts a receiver of webhooks, whose certificate is in acme-ca.pem, and
 * waits for the alerts of the first scan. raise-alerts raises two alerts, which the receiver
 * accepts at the channel soc and refuses at tickets. make-update writes posture-registry.update and
 * the root key that signed it.
 */
const COMMANDS: Readonly<Record<string, string>> = {
  sudo: `case "$1" in --user=*) as=\${1#--user=}; shift; exec runuser --user "$as" -- "$@" ;; esac
while case "$1" in -*) true ;; *) false ;; esac; do shift; done
exec "$@"`,
  npx: 'export PATH="$PATH:node_modules/.bin"; exec "$@"',
  // The clone has the packages that pages install.
  npm: `case "$1" in
  start) exec ${process.execPath} ${join(REPOSITORY, 'dist/deploy/demo.js')} --data-dir data ;;
  install) exit 0 ;;
esac
case "$2" in
  registry:key) shift 3; exec ${process.execPath} ${RELEASE}/registry-key-main.js "$@" ;;
  registry:package) shift 3; exec ${process.execPath} ${RELEASE}/registry-main.js "$@" --out "$PWD/release" ;;
esac`,
  docker: `case "$1 $2" in
  'compose exec') shift 3; exec "$@" ;;
  'compose logs') exec sed 's/^/service-1  | /' /var/log/service.log ;;
  'compose run') shift 4; exec posture-collector "$@" --settings-file /etc/posture-collector/collector.env ;;
esac`,
  kubectl: `case "$3" in
  exec) shift 5; exec "$@" ;;
  logs) exec cat /var/log/service.log ;;
esac`,
  'start-collector': `posture-collector run --settings-file /etc/posture-collector/collector.env > /var/log/collector.log 2>&1 &
until grep -q '"watching"' /var/log/collector.log; do
  kill -0 $! || { cat /var/log/collector.log; exit 1; }
  sleep 0.1
done
replay || exit 1
until posture-collector counters --json | grep -q '"acknowledged","count":64'; do sleep 0.2; done
exit 0`,
  'week-ago': `export NODE_OPTIONS='--import=data:text/javascript,const{now}=Date;Date.now=()=>now()-6048e5'; exec "$@"`,
  'start-receiver': `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=alerts.example.com \\
  -addext subjectAltName=DNS:alerts.example.com -keyout /var/tmp/receiver.key -out acme-ca.pem 2> /dev/null || exit 1
setsid ${process.execPath} ${RECEIVER} /var/tmp/receiver.key acme-ca.pem > /var/log/receiver.log 2>&1 &
until grep -q ready /var/log/receiver.log; do
  kill -0 $! || { cat /var/log/receiver.log; exit 1; }
  sleep 0.1
done
umask 077
echo https://hooks.slack.com/services/T0/B0/x > slack-url.txt
echo secret > mail-password.txt
until posture-admin alert list --json | grep -q unapproved; do sleep 0.5; done
exit 0`,
  'raise-alerts': `set -e
for name in slack mail siem; do posture-admin alert channel remove $name; done
posture-admin alert channel add tickets --kind webhook --url https://alerts.example.com/tickets --ca-file acme-ca.pem
posture-admin key create Splunk --scope discovery:read --expires 10d
posture-admin approval add Claude --expires 10d
until [ "$(posture-admin alert dead-letters list --json | wc -l)" = 2 ]; do sleep 0.5; done
exit 0`,
  'make-update': `mkdir --parents /etc/posture-service; exec ${process.execPath} ${REGISTRY_UPDATE}`,
  replay: `exec nsenter --target="$(cat /var/tmp/network)" --net tcpreplay -q --topspeed -i uplink ${DEMO_CAPTURE} > /dev/null`,
  ...Object.fromEntries(
    Object.entries(PROGRAMS).map(([name, script]) => [name, `exec ${process.execPath} ${script} "$@"`]),
  ),
}

const USERS = { 'posture-collector': 4001, 'posture-service': 4002, alice: 4003 }

export interface RunOptions {
  readonly input?: string | undefined
  /** The expected exit status. */
  readonly status?: number
}

export class Sandbox {
  readonly #directory = mkdtempSync(join(tmpdir(), 'posture-docs-'))
  #holder: ChildProcess | undefined
  readonly #environment: NodeJS.ProcessEnv

  private constructor() {
    this.#environment = {
      PATH: [join(this.#directory, 'bin'), process.env['PATH'], PROMETHEUS].join(':'),
      HOME: '/home/alice',
      TZ: 'UTC',
      LANG: 'C.UTF-8',
      // The receiver of alerts is on loopback.
      OUTBOUND_NETWORKS: '127.0.0.0/8',
    }
  }

  static async start(): Promise<Sandbox> {
    if (process.getuid?.() !== 0) throw new Error('the commands of the pages run in namespaces, which requires root')
    const made = new Sandbox()
    made.#makeFiles()
    await made.#enterNamespaces()
    return made
  }

  async stop(): Promise<void> {
    const holder = this.#holder
    if (holder !== undefined && holder.exitCode === null && holder.signalCode === null) {
      // The first process of the namespace: the kernel ends all others with it.
      holder.kill('SIGKILL')
      await once(holder, 'exit')
    }
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /** The path on the host of a file in the sandbox. Relative paths begin in the clone. */
  path(file: string): string {
    return join(this.#directory, 'own', file.startsWith('/') ? file : join(WORK, file))
  }

  write(file: string, text: string, mode = 0o644): void {
    mkdirSync(dirname(this.path(file)), { recursive: true })
    writeFileSync(this.path(file), text, { mode })
  }

  /** Starts a program and resolves with its first message. */
  async startProgram(name: keyof typeof PROGRAMS, words: readonly string[]): Promise<unknown> {
    const child = spawn('nsenter', this.#inside(process.execPath, PROGRAMS[name], ...words), {
      env: this.#environment,
      // `docker compose logs` shows this file.
      stdio: ['ignore', 'ignore', openSync(this.path('/var/log/service.log'), 'w'), 'ipc'],
    })
    const [message] = (await once(child, 'message')) as [unknown]
    child.channel?.unref()
    return message
  }

  /** Runs shell commands on a terminal of 80 columns. Rejects if they end with another status. */
  async run(commands: string, { input, status = 0 }: RunOptions = {}): Promise<string> {
    const child = this.#terminal(commands, input)
    let text = ''
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    const timer = setTimeout(() => this.#holder?.kill('SIGKILL'), COMMAND_MS_MAX)
    const [ended] = (await once(child, 'close')) as [number | null]
    clearTimeout(timer)
    if (ended !== status) throw new Error(`${commands.trim()}: status ${ended}\n${text}`)
    return text
  }

  /** Starts commands that keep running. Resolves with their output up to the line with `last`. */
  async runUntil(commands: string, last: string): Promise<string> {
    const child = this.#terminal(commands)
    let text = ''
    for await (const chunk of child.stdout?.setEncoding('utf8').iterator({ destroyOnReturn: false }) ?? []) {
      text += chunk as string
      const at = text.indexOf(last)
      const end = at < 0 ? -1 : text.indexOf('\n', at)
      if (end >= 0) {
        child.stdout?.resume()
        return text.slice(0, end)
      }
    }
    throw new Error(`${commands.trim()} ended early: ${text}`)
  }

  #terminal(commands: string, input?: string): ChildProcess {
    const stdin = input === undefined ? '' : "exec < '/var/tmp/input'\n"
    if (input !== undefined) this.write('/var/tmp/input', input)
    this.write('/var/tmp/commands', `stty cols 80 rows 50\n${stdin}set -e\n${commands}`)
    return spawn('nsenter', this.#inside('script', '-qec', 'sh /var/tmp/commands', '/dev/null'), {
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  }

  #inside(...command: readonly string[]): string[] {
    const id = this.#holder?.pid
    const namespaces = ['--net', '--mount', '--uts', `--pid=/proc/${id}/ns/pid_for_children`]
    return [`--target=${id}`, ...namespaces, 'env', `--chdir=${WORK}`, ...command]
  }

  #makeFiles(): void {
    for (const [name, script] of Object.entries(COMMANDS)) {
      const file = join(this.#directory, 'bin', name)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, `#!/bin/sh\n${script}\nexit 2\n`)
      chmodSync(file, 0o755)
    }
    for (const directory of DIRECTORIES) mkdirSync(this.path(directory), { recursive: true })
    for (const file of SERVICE.examples) {
      copyFileSync(join(REPOSITORY, file), this.path(join(EXAMPLES, basename(file))))
    }
    chmodSync(this.#directory, 0o755)
    for (const name of ['dist', 'test', 'docs', 'node_modules']) symlinkSync(join(REPOSITORY, name), this.path(name))
    symlinkSync(DEMO_CAPTURE, this.path('mine.pcap'))
  }

  async #enterNamespaces(): Promise<void> {
    const own = join(this.#directory, 'own')
    const users = Object.entries(USERS).map(([name, id]) => `${name}:x:${id}:${id}::/:/bin/false`)
    const script = `set -e
cp -a /etc/. ${own}/etc
printf '%s\\n' ${users.join(' ')} >> ${own}/etc/passwd
echo '127.0.0.1 localhost posture posture.example.com alerts.example.com' > ${own}/etc/hosts
${OWN_DIRECTORIES.map((directory) => `mount --bind ${own}${directory} ${directory}`).join('\n')}
hostname posture || echo posture > /proc/sys/kernel/hostname
ip link set lo up
# Without IPv6, so that no neighbor discovery packets are captured.
for setting in /proc/sys/net/ipv6/conf/*/disable_ipv6; do if [ -e $setting ]; then echo 1 > $setting; fi; done
ip link add eth0 mtu 9000 type veth peer name uplink mtu 9000
unshare --net sleep infinity & echo $! > /var/tmp/network
# Until unshare has made the network, its process is in this one.
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
ip link set uplink netns $!
nsenter --target=$! --net ip link set uplink up
ip address add 192.0.2.10/24 dev eth0
ip link set eth0 up
# Without this neighbor, a DNS query would end with an unanswered ARP request.
ip neighbor add 192.0.2.1 lladdr 02:00:00:00:02:01 dev eth0
echo 'nameserver 192.0.2.1' > /etc/resolv.conf
echo ready
exec cat`
    const namespaces = ['--net', '--mount', '--uts', '--pid', '--fork', '--kill-child', '--mount-proc']
    const holder = spawn('unshare', [...namespaces, 'sh', '-c', script], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#holder = holder
    const [ready] = (await Promise.race([once(holder.stdout, 'data'), once(holder, 'exit')])) as [unknown]
    if (String(ready).trim() !== 'ready') throw new Error('the namespaces cannot be created')
  }
}

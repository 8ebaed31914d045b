import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { COMMAND_PAGES, type Site } from './command-pages.ts'
import { terminalPicture } from './terminal-picture.ts'

/*
 * Sample outputs in the documentation are outputs of the commands above them. A block of commands
 * (```sh) is run if this marker follows it, and its output is put between the markers:
 *
 *   <!-- printed -->      or <!-- printed 12 --> for the first 12 lines
 *   <!-- end -->
 *
 * <!-- run COMMAND --> runs a command that the page does not show, for steps that a reader does
 * manually. Commands run on a terminal of 80 columns, against programs that this script starts on
 * free loopback ports. Secrets, ids, times, ports and paths are replaced, so that another run
 * changes nothing.
 */
const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url))
const PROGRAMS = {
  'posture-collector': join(REPOSITORY, 'dist/collector/main.js'),
  'posture-service': join(REPOSITORY, 'dist/api/main.js'),
  'posture-admin': join(REPOSITORY, 'dist/engine/admin/main.js'),
} as const
const DEMO = join(REPOSITORY, 'dist/deploy/demo.js')
const DEMO_CAPTURE = join(REPOSITORY, 'test/captures/demo/input.pcap')
const DEMO_READY = 'serving until Ctrl-C'
/**
 * Commands of container engines, by name: each runs the program of the container outside of a
 * container, and fails for everything else. A container prints the same.
 */
const CONTAINER_COMMANDS = {
  docker: `case "$1 $2" in
  'compose exec') shift 3; exec "$@" ;;
  'compose logs') exec cat service.log ;;
esac`,
  kubectl: `case "$3" in
  exec) shift 5; exec "$@" ;;
  logs) exec cat service.log ;;
esac`,
} as const
/** The data directories of the packages. Each site has its own copy of this tree. */
const STATE = '/var/lib/posture-'
/** The directory of backups on the pages. Each site has its own. */
const BACKUPS = '/backups/'
const COMMAND_MS_MAX = 120_000
/** Color sequences, and the text of a line before "erase in line" (ECMA-48, SGR and EL). */
const COLORS = new RegExp(`${String.fromCharCode(27)}\\[[\\d;]*m`, 'g')
const ERASED = new RegExp(`[^\\n]*${String.fromCharCode(27)}\\[\\d*K`, 'g')
const BLOCK =
  /^```sh\n((?:(?!```).*\n)*)```\n\n<!-- printed(?: (\d+))? -->\n([\s\S]*?)<!-- end -->|^<!-- run (.+) -->$/gm

/** Returns the page with the outputs of its commands. Rejects if a command fails unexpectedly. */
export async function withOutputs(text: string, site: Site): Promise<string> {
  const blocks = [...text.matchAll(BLOCK)]
  const running = await RunningSite.start(site)
  try {
    let made = ''
    let from = 0
    for (const block of blocks) {
      const [whole, commands, lines, , hidden = ''] = block
      if (commands === undefined) {
        await running.output(hidden)
        continue
      }
      const shown = firstLines(await running.output(commands), Number(lines ?? Number.POSITIVE_INFINITY))
      const fence = shown === '' ? '' : `\`\`\`text\n${shown}\n\`\`\`\n`
      const marker = lines === undefined ? '<!-- printed -->' : `<!-- printed ${lines} -->`
      made += `${text.slice(from, block.index)}\`\`\`sh\n${commands}\`\`\`\n\n${marker}\n${fence}<!-- end -->`
      from = block.index + whole.length
    }
    return made + text.slice(from)
  } finally {
    await running.stop()
  }
}

function firstLines(text: string, count: number): string {
  const lines = text.split('\n')
  return lines.length > count ? [...lines.slice(0, count), '…'].join('\n') : text
}

/** The ports of a service. */
interface Listening {
  readonly apiPort: number
  readonly ingestPort: number
  readonly metricsPort: number
  readonly syslog: readonly { readonly port: number }[]
}

/** A directory, and the running programs that the commands of one page use. */
class RunningSite {
  readonly #directory: string
  readonly #children: ChildProcess[] = []
  readonly #ports: [shown: string, actual: string][] = []
  readonly #known = new Map<string, string>()
  #environment: NodeJS.ProcessEnv
  #listening: Listening | undefined

  private constructor() {
    // A short name, since table columns are as wide as the paths in them.
    this.#directory = mkdtempSync(join(tmpdir(), 'p'))
    const bin = join(this.#directory, 'bin')
    mkdirSync(bin)
    mkdirSync(this.#inside(BACKUPS))
    for (const [name, script] of Object.entries(PROGRAMS)) {
      writeFileSync(join(bin, name), `#!/bin/sh\nexec ${process.execPath} ${script} "$@"\n`)
      chmodSync(join(bin, name), 0o755)
    }
    for (const [name, script] of Object.entries(CONTAINER_COMMANDS)) {
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\nexit 2\n`)
      chmodSync(join(bin, name), 0o755)
    }
    // In a clone, npx runs the same programs, but each call takes half a second longer.
    writeFileSync(join(bin, 'npx'), '#!/bin/sh\nexec "$@"\n')
    chmodSync(join(bin, 'npx'), 0o755)
    for (const name of ['dist', 'test']) symlinkSync(join(REPOSITORY, name), join(this.#directory, name))
    symlinkSync(DEMO_CAPTURE, join(this.#directory, 'mine.pcap'))
    this.#environment = { PATH: `${bin}:${process.env['PATH']}`, HOME: this.#directory, TZ: 'UTC', LANG: 'C.UTF-8' }
  }

  static async start(site: Site): Promise<RunningSite> {
    const made = new RunningSite()
    if (site !== 'clone') await made.#startService()
    if (site === 'service') await made.#fillService()
    return made
  }

  async stop(): Promise<void> {
    for (const child of this.#children) {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    }
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /** The output of the commands as a reader would see it. */
  async output(commands: string): Promise<string> {
    if (commands.trim() === 'npm start') return this.#shown(await this.#startDemo())
    return this.#shown(await this.#run(commands))
  }

  async #startService(): Promise<void> {
    const data = this.#inside(`${STATE}service`)
    mkdirSync(data, { recursive: true })
    this.#environment = { ...this.#environment, DATA_DIR: data, OUTBOX: this.#inside(`${STATE}collector`) }
    const loopback = ['--api-address', '127.0.0.1', '--ingest-address', '127.0.0.1']
    const ports = ['--api-port', '0', '--console-port', 'off', '--ingest-port', '0', '--metrics-port', '0']
    const syslog = ['--syslog-tls', 'off', '--syslog-tcp', '127.0.0.1:0', '--syslog-udp', 'off']
    const listening = (await this.#spawn(PROGRAMS['posture-service'], [...loopback, ...ports, ...syslog])) as Listening
    this.#listening = listening
    this.#ports.push(
      ['localhost:8443', `localhost:${listening.apiPort}`],
      ['localhost:9443', `localhost:${listening.ingestPort}`],
      ['--https-port 9443', `--https-port ${listening.ingestPort}`],
      ['127.0.0.1:9091', `127.0.0.1:${listening.metricsPort}`],
    )
    writeFileSync(join(this.#directory, 'access.log'), `${squidLines().join('\n')}\n`)
    copyFileSync(join(data, 'tls/certificate.pem'), join(this.#directory, 'certificate.pem'))
  }

  /** Adds an organization, demo events, log lines of all devices, and a scan. */
  async #fillService(): Promise<void> {
    await this.#run('posture-admin organization create Acme --domain acme.example')
    const token = secretIn(await this.#run('posture-admin token generate office --org Acme --json'))
    const key = secretIn(
      await this.#run(
        'posture-admin key create dashboard --org Acme --scope discovery:read recommendations:read --json',
      ),
    )
    this.#environment = { ...this.#environment, SVC_TOKEN: token }
    writeFileSync(join(this.#directory, 'branch.token'), `${token}\n`, { mode: 0o600 })
    writeFileSync(join(this.#directory, 'api-key.txt'), `X-API-Key: ${key}\n`)
    await this.#run(
      `posture-collector --read ${DEMO_CAPTURE} --shift-to-now --https-port ${this.#listening?.ingestPort} --ca certificate.pem --log-level WARNING`,
    )
    const element = `[svc@00000 key="${token}"]`
    await sendSyslog(
      this.#listening?.syslog[0]?.port ?? 0,
      [
        ...squidLines().map((line) => `proxy-1 - - - ${element} ${line}\n`),
        ...bindLines().map((line) => `dns-1 - - - ${element} ${line}\n`),
      ]
        .map((message) => `<134>1 - ${message}`)
        .join(''),
    )
    await this.#run('posture-admin scan run --org Acme')
  }

  async #startDemo(): Promise<string> {
    this.#environment = { ...this.#environment, DATA_DIR: join(this.#directory, 'data/service') }
    const words = [
      ...['--data-dir', join(this.#directory, 'data'), '--api-port', '0', '--console-port', '0'],
      ...['--ingest-port', '0', '--syslog-port', '0'],
    ]
    const child = spawn(process.execPath, [DEMO, ...words], {
      cwd: this.#directory,
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#children.push(child)
    let text = ''
    for await (const chunk of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      text += chunk as string
      if (text.includes(DEMO_READY)) break
    }
    if (!text.includes(DEMO_READY)) throw new Error(`npm start ended early: ${text}`)
    const port = /localhost:(\d+)/.exec(text)?.[1] ?? ''
    this.#ports.push(['localhost:8443', `localhost:${port}`])
    for (const kind of ['tcp', 'udp']) {
      const actual = new RegExp(`${kind} port \\d+`).exec(text)?.[0] ?? ''
      this.#ports.push([`${kind} port 1514`, actual])
    }
    const consolePort = /localhost:(\d+)\/setup/.exec(text)?.[1] ?? ''
    this.#ports.push(['localhost:8444', `localhost:${consolePort}`])
    return text
  }

  async #spawn(script: string, words: readonly string[]): Promise<unknown> {
    const child = spawn(process.execPath, [script, ...words], {
      env: this.#environment,
      stdio: ['ignore', 'ignore', openSync(join(this.#directory, 'service.log'), 'w'), 'ipc'],
    })
    this.#children.push(child)
    const [message] = (await once(child, 'message')) as [unknown]
    return message
  }

  /** Runs shell commands on a terminal of 80 columns. */
  async #run(commands: string): Promise<string> {
    let line = commands.replaceAll(/\bsudo (?:--preserve-env=\w+ )?/g, '')
    for (const path of [STATE, BACKUPS]) line = line.replaceAll(path, this.#inside(path))
    for (const [shown, actual] of this.#ports) line = line.replaceAll(shown, actual)
    const file = join(this.#directory, 'commands.sh')
    writeFileSync(file, `stty cols 80 rows 50\n${line}`)
    const child = spawn('script', ['-qec', `sh ${file}`, '/dev/null'], {
      cwd: this.#directory,
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: COMMAND_MS_MAX,
    })
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
    })
    const [status] = (await once(child, 'close')) as [number | null]
    if (status !== 0) throw new Error(`${commands.trim()}: status ${status}\n${text}`)
    return text
  }

  #inside(path: string): string {
    return join(this.#directory, path)
  }

  #shown(text: string): string {
    // Progress is drawn on one line, which is erased at the end.
    const shown = text.replaceAll('\r', '').replace(ERASED, '').replace(COLORS, '')
    // The visible digits of a secret are printed before the secret.
    for (const [, digits = ''] of shown.matchAll(/svc_(?:pk|mt)_([0-9a-f]{8})/g)) this.#fixed(digits)
    return shown
      .split('\n')
      .map((line) => aligned(line, this.#withFixedValues(this.#withFixedPaths(line))))
      .join('\n')
      .trimEnd()
  }

  #withFixedPaths(line: string): string {
    let fixed = line
    for (const [port, actual] of this.#ports) fixed = fixed.replaceAll(actual, port)
    return fixed
      .replaceAll(`${this.#directory}/`, '/')
      .replaceAll(`${this.#directory.slice(1)}/`, '')
      .replaceAll(REPOSITORY, '')
      .replaceAll(/\/data\//g, 'data/')
  }

  /** Replaces secrets, ids and times, which differ between runs, consistently within a page. */
  #withFixedValues(text: string): string {
    return (
      text
        .replace(/(?<=\/setup#)([0-9a-f]{8})[0-9a-f]+/g, (_, digits) => `${this.#fixed(digits)}…`)
        .replace(/svc_(pk|mt)_([0-9a-f]{8})[0-9a-f]+/g, (_, kind, digits) => `svc_${kind}_${this.#fixed(digits)}…`)
        .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, (id) => this.#fixedId(id))
        .replace(/\b[0-9a-f]{16}(?=[0-9a-f]{16}\b|\b)/g, (id) => this.#fixed(id))
        .replace(/(?<=[\s"│])[0-9a-f]{8}(?=[\s"│]|$)/g, (digits) => this.#known.get(digits) ?? digits)
        .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (_, part) => `2026-11-20T09:15:02${part ? '.123' : ''}Z`)
        .replace(/\b(?:[0-9A-F]{2}:){31}[0-9A-F]{2}\b/g, '4B:A2:98:…')
        .replace(/\d+ MB free/g, '79101 MB free')
        .replace(/(?<=│ )\d\.\d{3}(?= )/g, '0.125')
        // Without its last zeros.
        .replace(/(?<=\.backup +(?:│ +\d+ +){3}│ )[\d.]+/, '0.125')
        .replace(/(?<=│ )\d{6}(?= │)/g, '118832')
    )
  }

  #fixed(value: string): string {
    const known = this.#known.get(value)
    if (known !== undefined) return known
    const made = createHash('sha256').update(`value ${this.#known.size}`).digest('hex').slice(0, value.length)
    this.#known.set(value, made)
    return made
  }

  #fixedId(id: string): string {
    return id
      .split('-')
      .map((part, index) => (index === 0 || index > 2 ? this.#fixed(part) : part.replaceAll(/[0-9a-f]/g, '4')))
      .join('-')
  }
}

/** Keeps the width of table cells. */
function aligned(original: string, changed: string): string {
  const cells = original.split('│')
  if (cells.length < 3) return changed
  return changed
    .split('│')
    .map((cell, index) => cell.padEnd(cells[index]?.length ?? 0))
    .join('│')
    .trimEnd()
}

function secretIn(text: string): string {
  const [secret] = /svc_(?:pk|mt)_[0-9a-f]+/.exec(text) ?? []
  if (secret === undefined) throw new Error(`no secret in ${text}`)
  return secret
}

/** Current lines of a native Squid log. Older lines would be outside the evidence window. */
function squidLines(): string[] {
  const seconds = (Date.now() / 1000).toFixed(3)
  return ['api.anthropic.com', 'chatgpt.com', 'www.example.com'].map(
    (host, index) =>
      `${seconds}    318 192.0.2.${48 + index} TCP_TUNNEL/200 6120 CONNECT ${host}:443 jdoe HIER_DIRECT/198.51.100.20 -`,
  )
}

/** Current lines of a BIND query log. */
function bindLines(): string[] {
  const time = new Date().toISOString()
  return ['claude.ai', 'www.example.com'].map(
    (name) =>
      `${time} queries: info: client @0x7fb1c0004e10 192.0.2.50#40404 (${name}): query: ${name} IN A +E(0)K (192.0.2.53)`,
  )
}

async function sendSyslog(port: number, text: string): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.end(text)
  socket.resume()
  await once(socket, 'close')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = process.argv.slice(2)
  for (const [page, site] of Object.entries(COMMAND_PAGES)) {
    if (wanted.length > 0 && !wanted.includes(page)) continue
    const file = join(REPOSITORY, page)
    writeFileSync(file, await withOutputs(readFileSync(file, 'utf8'), site))
  }
  const page = readFileSync(join(REPOSITORY, 'docs/get-started.md'), 'utf8')
  for (const theme of ['light', 'dark'] as const) {
    writeFileSync(join(REPOSITORY, `docs/images/npm-start-${theme}.svg`), terminalPicture(page, theme))
  }
}

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FixedValues } from './fixed-values.ts'
import { codeBlock } from './markdown.ts'
import { REPOSITORY, Sandbox } from './sandbox.ts'

/**
 * The environment of a page's commands. `clone`: a clone of the repository without running
 * programs. `service`: an installed service with the organization Acme and a completed scan, and
 * the settings of a collector. `new service`: an installed service without an organization.
 */
export type Site = 'clone' | 'service' | 'new service'

/** The pages whose sample outputs are generated. */
export const COMMAND_PAGES: Readonly<Record<string, Site>> = {
  'README.md': 'clone',
  'docs/get-started.md': 'clone',
  'docs/collect/network.md': 'service',
  'docs/collect/logs.md': 'service',
  'docs/collect/proxies.md': 'service',
  'docs/collect/dns-servers.md': 'service',
  'docs/use/who-uses-what.md': 'service',
  'docs/use/approve-and-block.md': 'service',
  'docs/use/alerts.md': 'service',
  'docs/connect/api.md': 'service',
  'docs/connect/tickets.md': 'service',
  'docs/connect/siem.md': 'service',
  'docs/use/reports.md': 'service',
  'docs/connect/prometheus.md': 'service',
  'docs/operate/backup.md': 'service',
  'docs/use/console.md': 'service',
  'docs/use/single-sign-on.md': 'service',
  'docs/operate/upgrade.md': 'service',
  'docs/install/containers.md': 'new service',
  'docs/install/kubernetes.md': 'new service',
  'docs/operate/troubleshoot.md': 'service',
  'docs/install/debian.md': 'new service',
  'docs/collect/rsyslog.md': 'service',
  'docs/collect/syslog-ng.md': 'service',
  'docs/use/custom-platforms.md': 'service',
  'docs/collect/try-a-file.md': 'service',
  'docs/collect/firewalls.md': 'service',
  'docs/operate/registry.md': 'service',
  'docs/reference/roles.md': 'new service',
  'docs/use/assessments.md': 'service',
  'docs/use/privacy.md': 'service',
  'docs/reference/assessments.md': 'service',
  'docs/reference/ingest.md': 'service',
  'docs/reference/scoring.md': 'service',
}

/*
 * Sample outputs in the documentation are outputs of the commands above them. A block of commands
 * (```sh) is run if this marker follows it, and its output is put between the markers:
 *
 *   <!-- printed -->              The whole output. No output: the commands print nothing.
 *   <!-- printed 12 -->           The first 12 lines.
 *   <!-- printed until TEXT -->   Up to the line with TEXT. The commands keep running.
 *   <!-- printed status 2 -->     The whole output, and the commands fail with this exit status.
 *   <!-- end -->
 *
 * <!-- run COMMAND --> runs a command that the page does not show, for steps that a reader does
 * manually. <!-- file PATH --> writes the block after it to a file. A command that reads
 * /dev/stdin gets the last printed secret. Output that a person has written, because the commands
 * need other software, is between <!-- example --> and <!-- end -->.
 */
const PART =
  /^```sh\n((?:(?!```).*\n)*)```\n\n<!-- printed(?: (?:(\d+)|until (.+?)|status (\d+)))? -->\n[\s\S]*?<!-- end -->|^<!-- run (.+) -->$|^<!-- file (\S+) -->\n```\w+\n([\s\S]*?)```$/gm

/** The visible digits on all pages of a page's monitoring token and of its API key. */
const TOKEN_DIGITS = '69c66f2c'
/** Of the site's token, on pages that generate a token of their own. */
const SITE_TOKEN_DIGITS = '30626d62'
const KEY_DIGITS = '4f0c1a2b'
const GENERATES_TOKEN = /\btoken generate\b/

/** Returns the page with the outputs of its commands. Rejects if a command fails. */
export async function withOutputs(text: string, site: Site): Promise<string> {
  const runner = await SiteRunner.start(site, !GENERATES_TOKEN.test(text))
  try {
    let made = ''
    let from = 0
    for (const part of text.matchAll(PART)) {
      const [whole, commands, lines, last, status = '0', hidden, file, content = ''] = part
      if (hidden !== undefined) await runner.output(hidden)
      else if (file !== undefined) runner.writeFile(file, content)
      if (commands === undefined) continue
      const output = await runner.output(commands, last, Number(status))
      const shown = firstLines(output, Number(lines ?? Number.POSITIVE_INFINITY))
      const head = whole.slice(0, whole.indexOf(' -->\n') + ' -->\n'.length)
      made += `${text.slice(from, part.index)}${head}${shown === '' ? '' : `${codeBlock('text', shown)}\n`}<!-- end -->`
      from = part.index + whole.length
    }
    return made + text.slice(from)
  } finally {
    await runner.stop()
  }
}

function firstLines(text: string, count: number): string {
  const lines = text.split('\n')
  return lines.length > count ? [...lines.slice(0, count), '…'].join('\n') : text
}

/** A sandbox with the programs that the commands of one page need. */
class SiteRunner {
  readonly #sandbox: Sandbox
  readonly #values = new FixedValues()
  #pin = ''
  /** The variables that commands of the page have exported. A reader stays in the same shell. */
  #exports = ''
  /** The last secret that a command printed. */
  #secret = ''

  private constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
  }

  /** @param namesToken whether TOKEN_DIGITS are those of the site's token, not of the page's. */
  static async start(site: Site, namesToken: boolean): Promise<SiteRunner> {
    const runner = new SiteRunner(await Sandbox.start())
    try {
      if (site !== 'clone') await runner.#startService()
      if (site === 'service') await runner.#fillService(namesToken)
    } catch (error) {
      await runner.stop()
      throw error
    }
    return runner
  }

  stop(): Promise<void> {
    return this.#sandbox.stop()
  }

  /** The output of the commands as a reader would see it. */
  async output(commands: string, last?: string, status = 0): Promise<string> {
    const line = `${this.#exports}${this.#values.actual(commands)}`
    for (const [whole] of commands.matchAll(/^export .*\n/gm)) this.#exports += whole
    const input = commands.includes('/dev/stdin') ? `${this.#secret}\n` : undefined
    const text =
      last === undefined ? await this.#sandbox.run(line, { input, status }) : await this.#sandbox.runUntil(line, last)
    for (const [secret] of text.matchAll(/svc_(?:pk|mt)_[0-9a-f]+/g)) this.#secret = secret
    if (GENERATES_TOKEN.test(commands)) this.#values.name(digitsOf(this.#secret), TOKEN_DIGITS)
    return this.#values.text(text)
  }

  /** Pages abbreviate the pin of the service's key. */
  writeFile(file: string, content: string): void {
    this.#sandbox.write(file, content.replaceAll('sha256-key:4ba298…', this.#pin))
  }

  async #startService(): Promise<void> {
    await this.#sandbox.startProgram('posture-service', [])
    const log = readFileSync(this.#sandbox.path('/var/log/service.log'), 'utf8')
    this.#pin = /sha256-key:[0-9a-f]{64}/.exec(log)?.[0] ?? ''
    this.#sandbox.write(
      'certificate.pem',
      readFileSync(this.#sandbox.path('/var/lib/posture-service/tls/certificate.pem'), 'utf8'),
    )
    this.#sandbox.write('access.log', `${squidLines().join('\n')}\n`)
  }

  /** Adds an organization, demo events, log lines of two devices, and a scan. */
  async #fillService(namesToken: boolean): Promise<void> {
    const sandbox = this.#sandbox
    const run = (commands: string): Promise<string> => sandbox.run(commands)
    await run('posture-admin organization create Acme --domain acme.example')
    const token = secretIn(await run('posture-admin token generate office --org Acme --json'))
    const key = secretIn(
      await run('posture-admin key create dashboard --org Acme --scope discovery:read recommendations:read --json'),
    )
    this.#values.name(digitsOf(token), namesToken ? TOKEN_DIGITS : SITE_TOKEN_DIGITS)
    this.#values.name(digitsOf(key), KEY_DIGITS)
    sandbox.write('branch.token', `${token}\n`, 0o600)
    sandbox.write('/etc/posture-collector/token', `${token}\n`, 0o600)
    sandbox.write('api-key.txt', `X-API-Key: ${key}\n`)
    this.writeFile(
      '/etc/posture-collector/collector.env',
      'SVC_TOKEN_FILE=/etc/posture-collector/token\nSVC_ENDPOINT=localhost\nSERVICE_FINGERPRINT=sha256-key:4ba298…\nINTERFACE=eth0\n',
    )
    await run(
      'posture-collector run --settings-file /etc/posture-collector/collector.env --read mine.pcap --shift-to-now --log-level WARNING',
    )
    const element = `[svc@00000 key="${token}"]`
    const messages = [
      ...squidLines().map((line) => `proxy-1 - - - ${element} ${line}`),
      ...bindLines().map((line) => `dns-1 - - - ${element} ${line}`),
    ]
    sandbox.write('messages', messages.map((message) => `<134>1 - ${message}\n`).join(''))
    await run("bash -c 'cat messages > /dev/tcp/127.0.0.1/514'; rm messages")
    await run('posture-admin scan run --org Acme')
  }
}

function secretIn(text: string): string {
  const [secret] = /svc_(?:pk|mt)_[0-9a-f]+/.exec(text) ?? []
  if (secret === undefined) throw new Error(`no secret in ${text}`)
  return secret
}

function digitsOf(secret: string): string {
  return secret.slice('svc_mt_'.length, 'svc_mt_'.length + TOKEN_DIGITS.length)
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

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = process.argv.slice(2)
  for (const [page, site] of Object.entries(COMMAND_PAGES)) {
    if (wanted.length > 0 && !wanted.includes(page)) continue
    const file = join(REPOSITORY, page)
    try {
      writeFileSync(file, await withOutputs(readFileSync(file, 'utf8'), site))
    } catch (cause) {
      throw new Error(page, { cause })
    }
  }
}

import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { SECOND_MS } from '../../process/clock.ts'
import { Fault } from '../../process/error-codes.ts'
import { isHeld } from '../../process/exclusive.ts'
import { canAsk, Questions } from '../../process/questions.ts'
import { exitStatusOf, stopSignal } from '../../process/shutdown.ts'
import { printsTable, secretText } from '../../process/table.ts'
import { SCANS } from '../../scan/scan-now.ts'
import { SCOPES, type Scope } from '../../store/api-keys.ts'
import { isServed } from '../served-certificate.ts'
import { type Reach, type ReadyLines, readyLines, type SetupResult, setUp } from '../setup.ts'
import { VERIFY_MS, verify } from '../verify.ts'
import {
  type AdminContext,
  changeOptions,
  countOption,
  dataDirectoryOf,
  printText,
  show,
  withStore,
} from './context.ts'
import { showDiscovery, waitForScan } from './scan.ts'
import { arrivalLine } from './verify.ts'

interface Flags {
  readonly org?: string
  readonly domain?: string
  readonly label: string
  readonly scope: readonly Scope[]
  readonly endpoint: string
  readonly apiPort: number
  readonly ingestPort: number
  readonly syslogPort: number
  readonly wait: boolean
  readonly timeout: number
  readonly json?: boolean
}

/** posture-admin setup */
export function addSetupCommand(command: Command): void {
  const port = (flags: string, about: string, byDefault: number): Option =>
    new Option(flags, about).default(byDefault).argParser(countOption(1, 65535))
  const setup = changeOptions(command)
    .option('--org <name>', 'Set the name of the organization; prompted for on a terminal')
    .option('--domain <domain>', 'Set the domain that scans report; prompted for on a terminal')
    .option('--label <label>', 'Set the label of the token and the key', 'setup')
    .addOption(
      new Option('--scope <scope...>', 'Grant these scopes to the API key').choices(SCOPES).default(['discovery:read']),
    )
    .option('--endpoint <host>', 'Name this host of the service in the printed lines', hostname())
    .addOption(port('--api-port <port>', 'Name this port of the REST API', 8443))
    .addOption(port('--ingest-port <port>', 'Name this HTTPS ingest port', 9443))
    .addOption(port('--syslog-port <port>', 'Name this port of syslog over TLS', 6514))
    .option('--no-wait', 'Print the lines, and do not wait for events')
    .addOption(
      new Option('--timeout <seconds>', 'Wait at most this long for the first event')
        .default(VERIFY_MS / SECOND_MS)
        .argParser(countOption(1, 24 * 3600)),
    )
  setup.action((flags: Flags) => withStore(setup, (context) => run(setup, context, flags), { create: true }))
}

/** What the flags leave out is asked for. An organization that exists has its domain. */
async function answers({ store }: AdminContext, { org, domain }: Flags): Promise<Answers> {
  const domainOf = (name: string): string | undefined => domain ?? store.organizations.find(name)?.domain
  const known = org === undefined ? undefined : domainOf(org)
  if (org !== undefined && known !== undefined) return { name: org, domain: known }
  if (!canAsk()) {
    throw new Fault(
      'USAGE',
      '--org and --domain are required: the name of the organization and the domain of its scans',
    )
  }
  const questions = new Questions()
  try {
    const name = org ?? (await questions.text('Name of the organization'))
    const asked = domainOf(name) ?? (await questions.text('Domain that scans report, such as acme.example'))
    return { name, domain: asked }
  } finally {
    questions.close()
  }
}

interface Answers {
  readonly name: string
  readonly domain: string
}

async function run(command: Command, context: AdminContext, flags: Flags): Promise<void> {
  const { store, administration } = context
  const { wait, label, scope: scopes } = flags
  // Before anything is created: nothing can arrive without the service.
  if (wait && !(await isHeld(store.environment.path, SCANS))) {
    throw new Fault(
      'SERVICE_UNREACHABLE',
      `no posture-service runs on ${store.environment.path}; start it first, or set --no-wait`,
    )
  }
  const { name, domain } = await answers(context, flags)
  const sinceMs = context.clock.nowMs()
  const result = setUp(administration, store, { name, domain, label, scopes })
  const lines = readyLines(result.token, await reachOf(command, flags))
  print(command, flags, result, lines)
  if (wait) await firstFinding(command, context, result, { sinceMs, timeoutMs: flags.timeout * SECOND_MS })
}

/** The self-signed certificate only if the service is known to use it. */
async function reachOf(command: Command, { endpoint: host, apiPort, ingestPort, syslogPort }: Flags): Promise<Reach> {
  const certificateFile = resolve(join(dataDirectoryOf(command), 'tls/certificate.pem'))
  const ports = { host, apiPort, ingestPort, syslogPort }
  const unknown = { ...ports, fingerprint: '', certificateFile: '' }
  if (!existsSync(certificateFile)) return unknown
  const fingerprint = new X509Certificate(readFileSync(certificateFile)).fingerprint256
  const isInUse = await isServed(fingerprint, ['localhost', host], [ingestPort, apiPort, syslogPort])
  return isInUse ? { ...ports, certificateFile, fingerprint } : unknown
}

/** For people, secrets on lines of their own and then the ready lines; elsewhere one object. */
function print(
  command: Command,
  { json }: Flags,
  { organization, created, apiKey, token }: SetupResult,
  lines: Readonly<Record<string, ReadyLines>>,
): void {
  if (!printsTable(json === undefined ? {} : { json })) {
    const texts = Object.entries(lines).map(([name, { steps }]) => {
      return [name === 'syslogNg' ? 'syslog_ng' : name, steps.flatMap((step) => step.lines)]
    })
    const row = { organization: organization.name, organization_id: organization.id, created, key: apiKey, token }
    show(command, { columns: [], rows: [{ ...row, ...Object.fromEntries(texts) }] })
    return
  }
  const blocks = Object.values(lines).map(({ title, steps }) => {
    const parts = steps.map(({ what, lines }) => `${what}:\n\n${lines.map((line) => `  ${line}\n`).join('')}`)
    return `${title}\n${'-'.repeat(title.length)}\n\n${parts.join('\n')}`
  })
  const done = created ? 'created the organization' : 'using the organization'
  const secrets = `${secretText('API key', apiKey)}\n${secretText('Monitoring token', token)}`
  printText(command, `${done} ${organization.name}\n\n${secrets}\n${blocks.join('\n')}\n`)
}

/** Waits for the first event of the new token, and shows what a scan finds. */
async function firstFinding(
  command: Command,
  context: AdminContext,
  { organization, tokenId }: SetupResult,
  times: { readonly sinceMs: number; readonly timeoutMs: number },
): Promise<void> {
  const { store, administration } = context
  const seconds = times.timeoutMs / SECOND_MS
  if (process.stderr.isTTY) {
    process.stderr.write(`waiting up to ${seconds} s for events of the new token; press Ctrl-C to stop\n`)
  }
  const stop = stopSignal()
  const cancel = new AbortController()
  void stop.received.then(() => cancel.abort())
  const verdict = await verify(
    store,
    organization.id,
    new Set([tokenId]),
    (arrival) => process.stderr.write(`${arrivalLine({ ...arrival, token_label: '' })}\n`),
    { ...times, signal: cancel.signal },
  ).finally(() => stop.forget())
  if (cancel.signal.aborted) {
    process.stderr.write('posture-admin: everything is created; continue with posture-admin verify\n')
    process.exitCode = exitStatusOf(await stop.received)
    return
  }
  if (verdict.events === 0) {
    throw new Fault(
      'NO_EVENTS',
      `no events within ${seconds} s, everything is created; continue with posture-admin verify`,
    )
  }
  const pending = administration.scans.request(organization)
  const completed = await waitForScan(context, pending)
  if (completed !== undefined) showDiscovery(command, context, organization)
}

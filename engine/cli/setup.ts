import { X509Certificate } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { join, resolve } from 'node:path'
import { connect } from 'node:tls'
import { z } from 'zod'
import { type ReadyLines, readyLines, type SetupResult, setUp } from '../admin/setup.ts'
import { verify } from '../admin/verify.ts'
import { lacksNames, provideCertificate, selfSignedFiles } from '../http/certificate.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { isHeld } from '../kernel/process/exclusive.ts'
import { keyPin } from '../kernel/process/key-pin.ts'
import { canAsk, Questions } from '../kernel/process/questions.ts'
import { hostNames, oneOf, portNumber, setting } from '../kernel/process/settings.ts'
import { within } from '../kernel/process/signals.ts'
import { secretText } from '../kernel/process/table.ts'
import { SCANS } from '../scan/scan-now.ts'
import { SCOPES } from '../store/secrets.ts'
import { type Commands, change, flag, option } from './command.ts'
import type { AdminContext, Output } from './context.ts'
import { discovery, waitForScan } from './scan.ts'
import { arrivalLine, assertServiceRuns, timeoutOption, waitForEvents } from './verify.ts'

/** Addresses that are offered as names of the certificate. A host of containers has hundreds. */
const ADDRESSES_MAX = 8
/** How long a listener may take to present its certificate, in milliseconds. */
const HANDSHAKE_MS = 2000
/** Senders get nothing of a certificate that the service may not use. */
const UNKNOWN = { certificateFile: '', pin: '' }

const PARAMS = {
  tlsNames: setting(hostNames().default([]), {
    flag: '--tls-name <name>',
    about:
      'Make the self-signed certificate valid for this host name or IP address; repeat the flag, or separate names by commas; prompted for on a terminal',
    repeatable: true,
  }),
  org: option('--org <name>', 'Set the name of the organization; prompted for on a terminal'),
  domain: option('--domain <domain>', 'Set the domain that scans report; prompted for on a terminal'),
  label: option('--label <label>', 'Set the label of the token and the key', z.string().default('setup')),
  scopes: option(
    '--scope <scope...>',
    'Grant these scopes to the API key',
    z.array(oneOf(SCOPES)).default(['discovery:read']),
  ),
  endpoint: option(
    '--endpoint <host>',
    'Name this host of the service in the printed lines; by default the first name given for the certificate, or the name of this host',
  ),
  apiPort: option('--api-port <port>', 'Name this port of the REST API', portNumber().default(8443)),
  ingestPort: option('--ingest-port <port>', 'Name this HTTPS ingest port', portNumber().default(9443)),
  syslogPort: option('--syslog-port <port>', 'Name this port of syslog over TLS', portNumber().default(6514)),
  wait: flag('--no-wait', 'Print the lines, and do not wait for events'),
  timeout: timeoutOption('Wait at most this long for the first event'),
}

type Given = { readonly [Name in keyof typeof PARAMS]: z.output<(typeof PARAMS)[Name]> }

export const commands: Commands = {
  '': change('', {
    organization: false,
    creates: true,
    params: PARAMS,
    async run(context, given) {
      const { store, administration, output } = context
      const { wait, label, scopes, tlsNames: names, json } = given
      // Before anything is created: nothing can arrive without the service.
      if (wait) await assertServiceRuns(store, ', or set --no-wait')
      const directory = resolve(join(store.dataDirectory, 'tls'))
      const isUsed = await usesSelfSigned(context, directory, given)
      if (names.length > 0 && isUsed === false) {
        throw new Fault('USAGE', `--tls-name: the service does not use the self-signed certificate in ${directory}`)
      }
      const lacks = names.length === 0 && isUsed !== false && lacksNames(selfSignedFiles(directory))
      const { name, domain, tlsNames } = await answers(context, given, lacks && !json && canAsk())
      const isKnown = isUsed === true || tlsNames.length > 0
      const { certificateFile, pin } = isKnown ? await provideCertificate(directory, undefined, tlsNames) : UNKNOWN
      const sinceMs = context.clock.nowMs()
      const result = setUp(administration, store, { name, domain, label, scopes })
      const { endpoint: host = tlsNames[0] ?? hostname(), apiPort, ingestPort, syslogPort } = given
      const lines = readyLines(result.token, { host, apiPort, ingestPort, syslogPort, certificateFile, pin })
      print(output, result, lines, tlsNames)
      if (wait) await firstFinding(context, result, sinceMs, given.timeout)
    },
  }),
}

interface Answers {
  readonly name: string
  readonly domain: string
  /** For the self-signed certificate. None: it stays as it is. */
  readonly tlsNames: readonly string[]
}

/**
 * What the flags leave out is asked for on a terminal. An organization that exists has its domain.
 */
async function answers(
  { store }: AdminContext,
  { org, domain, tlsNames, endpoint = hostname() }: Given,
  asksNames: boolean,
): Promise<Answers> {
  const domainOf = (name: string): string | undefined => domain ?? store.organizations.find(name)?.domain
  const known = org === undefined ? undefined : domainOf(org)
  if (org !== undefined && known !== undefined && !asksNames) return { name: org, domain: known, tlsNames }
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
    return { name, domain: asked, tlsNames: asksNames ? await askNames(questions, endpoint) : tlsNames }
  } finally {
    questions.close()
  }
}

/** Log relays compare the name or address by which they reach the service with the certificate. */
function askNames(questions: Questions, host: string): Promise<readonly string[]> {
  const addresses = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    .filter(({ internal, scopeid = 0 }) => !internal && scopeid === 0)
    .map(({ address }) => address)
  const detected = [...new Set([host.toLowerCase(), ...addresses.slice(0, ADDRESSES_MAX)])]
  const question = `Names and addresses of this service, for its self-signed certificate [${detected.join(',')}]: `
  return questions.ask(question, (answer) => {
    const names = hostNames().safeParse(answer)
    if (!names.success) return names.error.issues[0]?.message ?? ''
    return { value: names.data.length === 0 ? detected : names.data }
  })
}

/** For people, secrets on lines of their own and then the ready lines; elsewhere one object. */
function print(
  output: Output,
  { organization, created, apiKey, token }: SetupResult,
  lines: Readonly<Record<string, ReadyLines>>,
  tlsNames: readonly string[],
): void {
  if (!output.isTable) {
    const texts = Object.entries(lines).map(([name, { steps }]) => {
      return [name === 'syslogNg' ? 'syslog_ng' : name, steps.flatMap((step) => step.lines)]
    })
    const row = { organization: organization.name, organization_id: organization.id, created, key: apiKey, token }
    output.show({ columns: [], rows: [{ ...row, ...Object.fromEntries(texts) }] })
    return
  }
  const blocks = Object.values(lines).map(({ title, steps }) => {
    const parts = steps.map(({ what, lines }) => `${what}:\n\n${lines.map((line) => `  ${line}\n`).join('')}`)
    return `${title}\n${'-'.repeat(title.length)}\n\n${parts.join('\n')}`
  })
  const done = created ? 'created the organization' : 'using the organization'
  const secrets = `${secretText('API key', apiKey)}\n${secretText('Monitoring token', token)}`
  const names = tlsNames.length === 0 ? '' : `the certificate is valid for ${tlsNames.join(', ')}\n`
  output.print(`${done} ${organization.name}\n${names}\n${secrets}\n${blocks.join('\n')}\n`)
}

/** Waits for the first event of the new token, and shows what a scan finds. */
async function firstFinding(
  context: AdminContext,
  { organization, tokenId }: SetupResult,
  sinceMs: number,
  seconds: number,
): Promise<void> {
  const { store, administration, output } = context
  const print = (line: string): boolean => process.stderr.write(`${line}\n`)
  const { result, exitStatus } = await waitForEvents('the new token', seconds, (options) =>
    verify(
      store,
      organization.id,
      new Set([tokenId]),
      (arrival) => print(arrivalLine({ ...arrival, token_label: '' })),
      { ...options, sinceMs },
    ),
  )
  const next = 'continue with posture-admin verify'
  if (exitStatus !== undefined) {
    print(`posture-admin: everything is created; ${next}`)
    process.exitCode = exitStatus
    return
  }
  if (result.events === 0) {
    throw new Fault('NO_EVENTS', `no events within ${seconds} s, everything is created; ${next}`)
  }
  const completed = await waitForScan(context, administration.scans.request(organization))
  if (completed !== undefined) output.show(discovery(context, organization))
}

/** Whether the service uses the self-signed certificate; undefined if no service runs. */
async function usesSelfSigned(
  { store }: AdminContext,
  directory: string,
  { endpoint = hostname(), apiPort, ingestPort, syslogPort }: Given,
): Promise<boolean | undefined> {
  const { certificateFile } = selfSignedFiles(directory)
  if (existsSync(certificateFile)) {
    const pin = keyPin(new X509Certificate(readFileSync(certificateFile)))
    if (await isServed(pin, ['localhost', endpoint], [ingestPort, apiPort, syslogPort])) return true
  }
  return (await isHeld(store.environment.path, SCANS)) ? false : undefined
}

/**
 * Whether a listener on one of the ports presents a certificate of the key. The file alone does not
 * prove that: a service with a certificate of its own ignores it, and may have made it before.
 *
 * @param pin of keyPin()
 */
async function isServed(pin: string, hosts: readonly string[], ports: readonly number[]): Promise<boolean> {
  const listeners = hosts.flatMap((host) => ports.map((port) => ({ host, port })))
  const presented = await Promise.all(listeners.map(({ host, port }) => presentedPin(host, port)))
  return presented.includes(pin)
}

/** Undefined if nothing listens there with TLS. The caller compares it, so no CA has to. */
async function presentedPin(host: string, port: number): Promise<string | undefined> {
  let pin: string | undefined
  const socket = connect({ host, port, rejectUnauthorized: false })
  const ended = new Promise<void>((resolve) => {
    socket.on('error', () => resolve())
    socket.on('close', () => resolve())
    socket.on('secureConnect', () => {
      const certificate = socket.getPeerX509Certificate()
      pin = certificate && keyPin(certificate)
      resolve()
    })
  })
  await within(HANDSHAKE_MS, ended)
  socket.destroy()
  return pin
}

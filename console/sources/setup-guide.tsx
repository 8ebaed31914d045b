import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { z } from 'zod'
import { SENDER_GROUPS, SENDERS, type SenderFacts, type SenderKind } from '../../engine/admin/senders.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { keyPin } from '../../engine/kernel/process/key-pin.ts'
import { type Secret, statusOf } from '../../engine/store/secrets.ts'
import { Form, Select } from '../design/form.tsx'
import { Card, Notice, PageHead, SecretText, Snippet, Tag } from '../design/parts.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import { type Answer, fileAnswer } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import type { IngestListeners } from '../ingest-listeners.ts'
import { LabelField } from '../secrets/secrets.tsx'

/** Stands for the token in instructions, unless the token was just generated. */
const TOKEN_PLACEHOLDER = 'MONITORING_TOKEN'
const HOST_PLACEHOLDER = 'posture.example.com'
const HTTPS_PORT = 9443
const TLS_PORT = 6514
const PLAIN_PORT = 514

/**
 * Instructions for each kind of sender, filled in with the address, ports and certificate of this
 * service.
 *
 * @param tokenId the chosen token; '' if none is chosen
 * @param raw the token itself, if it was just generated; otherwise ''
 */
function setupGuideView(visit: Visit, tokenId: string, raw: string) {
  const { site, organization, nowMs, request } = visit
  const tokens = site.store.monitoringTokens
    .ofOrganization(organization.id)
    .filter((token) => statusOf(token, nowMs) === 'active')
    .sort((a, b) => b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1))
  const token = tokens.find(({ id }) => id === tokenId)
  const hostName = hostNameOf(request.origin)
  const certificate = certificateView(site.ingest, hostName)
  const facts: SenderFacts = {
    token: raw === '' ? TOKEN_PLACEHOLDER : raw,
    visible: token?.visible ?? '',
    organization: organization.name,
    plainPort: site.ingest.plainPorts[0] ?? PLAIN_PORT,
    reach: {
      host: hostName === '' ? HOST_PLACEHOLDER : hostName,
      apiPort: 0,
      ingestPort: site.ingest.httpsPort ?? HTTPS_PORT,
      syslogPort: site.ingest.tlsPorts[0] ?? TLS_PORT,
      pin: certificate === undefined || certificate.pem === '' ? '' : certificate.pin,
      certificateFile: '',
    },
  }
  return { tokens, token, senders: SENDERS.map((kind) => senderView(kind, facts, site.ingest)), certificate }
}

function senderView({ steps, needs, ...kind }: SenderKind, facts: SenderFacts, ingest: IngestListeners) {
  const missing = {
    https: ingest.httpsPort === undefined ? `INGEST_PORT=${HTTPS_PORT}` : '',
    tls: ingest.tlsPorts.length === 0 ? `SYSLOG_TLS=${TLS_PORT}` : '',
    plain: ingest.plainPorts.length === 0 ? `SYSLOG_UDP=${PLAIN_PORT}` : '',
    none: '',
  }
  /** The setting that turns on the listener that the sender needs; '' if the listener is on. */
  return { ...kind, steps: steps(facts), missing: missing[needs] }
}

/** undefined if no listener uses TLS, or if the file cannot be read at the moment. */
function certificateView(ingest: IngestListeners, hostName: string) {
  if (ingest.certificateFile === '') return undefined
  const certificate = readCertificate(ingest.certificateFile)
  if (certificate === undefined) return undefined
  const { fingerprint256: fingerprint, subjectAltName = '' } = certificate
  const names = subjectAltName.split(', ').flatMap((each) => each.split(':').slice(1).join(':') || [])
  const isValidHere =
    (isIP(hostName) === 0 ? certificate.checkHost(hostName) : certificate.checkIP(hostName)) !== undefined
  // Only the certificate: the file may contain its key as well.
  const pem = isSelfSigned(certificate) ? certificate.toString() : ''
  return { fingerprint, pin: keyPin(certificate), names, isValidHere, pem }
}

function readCertificate(file: string): X509Certificate | undefined {
  try {
    return new X509Certificate(readFileSync(file))
  } catch {
    return undefined
  }
}

/** X509Certificate.checkIssued() denies it for a certificate that may not sign others. */
function isSelfSigned(certificate: X509Certificate): boolean {
  return certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey)
}

/**
 * Returns the name or address in an origin; '' if it is not valid. The Host field can contain
 * anything, and instructions for senders repeat it in commands.
 */
export function hostNameOf(origin: string): string {
  const name = URL.canParse(origin) ? new URL(origin).hostname.replace(/^\[|\]$/g, '') : ''
  return /^[a-z0-9.:-]+$/.test(name) ? name : ''
}

interface SetupGuideProps {
  readonly visit: Visit
  readonly view: ReturnType<typeof setupGuideView>
  readonly form: FormState
  /** The token that was just generated; '' otherwise. One page shows it, once. */
  readonly raw: string
}

function SetupGuide(props: SetupGuideProps) {
  const { token } = props.view
  return (
    <>
      <PageHead title="Setup" about="Three steps to the first findings" />
      <Steps current={token === undefined ? 1 : 2} tokenId={token?.id} />
      {token === undefined ? (
        <ChooseToken {...props} />
      ) : (
        <>
          <ChosenToken token={token} raw={props.raw} />
          <Send {...props} />
          <Card title="Verify">
            <p class="row">
              <a class="button first" href={`/monitoring-tokens/${token.id}/verify`}>
                Verify
              </a>
              <span class="muted">Shows what arrives with this token, for up to five minutes.</span>
            </p>
          </Card>
        </>
      )}
    </>
  )
}

/** Where the visitor is. Steps that are possible are links. */
export function Steps({ current, tokenId }: { readonly current: 1 | 2 | 3; readonly tokenId: string | undefined }) {
  const steps = [
    ['Token', '/setup-guide'],
    ['Sensor or logs', `/setup-guide?token=${tokenId}`],
    ['Verify', `/monitoring-tokens/${tokenId}/verify`],
  ] as const
  return (
    <ol class="stepper">
      {steps.map(([name, path], at) => {
        const number = at + 1
        const isLink = number !== current && (at === 0 || tokenId !== undefined)
        return (
          <li
            key={name}
            class={number < current ? 'done' : undefined}
            aria-current={number === current ? 'step' : undefined}
          >
            <span class="number" aria-hidden="true">
              {number < current ? '✓' : number}
            </span>
            {isLink ? <a href={path}>{name}</a> : name}
          </li>
        )
      })}
    </ol>
  )
}

/** Step 1. */
function ChooseToken({ visit, view: { tokens }, form }: SetupGuideProps) {
  const mayGenerate = visit.may('token.generate')
  return (
    <div class={mayGenerate && tokens.length > 0 ? 'two' : undefined}>
      {mayGenerate && (
        <Card title="Generate a monitoring token">
          <Form action={PATH} form={form} submit="Generate Token">
            <p class="muted">A collector or a log sender proves with it that its events are yours.</p>
            <LabelField form={form} hint="The sensor or sender that will use it, such as its site." />
          </Form>
        </Card>
      )}
      {tokens.length > 0 && (
        <Card title="Use a token that you have">
          <form class="stack" method="get" action="/setup-guide">
            <p class="muted">Its text was shown once. The instructions have a placeholder in its place.</p>
            <Select
              name="token"
              label="Token"
              form={EMPTY_FORM}
              options={tokens.map(({ id, label, visible }) => [id, `${label} (svc_mt_${visible}…)`])}
            />
            <p>
              <button type="submit">Continue</button>
            </p>
          </form>
        </Card>
      )}
      {!mayGenerate && tokens.length === 0 && (
        <Card title="No monitoring token">
          <p class="muted">Ask an admin of the organization to generate one.</p>
        </Card>
      )}
    </div>
  )
}

function ChosenToken({ token: { label, visible }, raw }: { readonly token: Secret; readonly raw: string }) {
  if (raw !== '') {
    return (
      <Notice title={`Copy the token “${label}” now. It will not be shown again`}>
        <SecretText id="secret" value={raw} />
        <p class="small">The instructions on this page contain it, too. Only a hash of the token is stored here.</p>
      </Notice>
    )
  }
  return (
    <p>
      Token <strong>{label}</strong> <span class="mono muted">svc_mt_{visible}…</span> ·{' '}
      <a href="/setup-guide">use another one</a>
    </p>
  )
}

/** Step 2. */
function Send({ visit, view: { senders, certificate }, raw }: SetupGuideProps) {
  const open = visit.request.query.get('sender')
  return (
    <>
      <Card title="What will send?" note="open one and follow its steps" bare>
        <div class="senders">
          {SENDER_GROUPS.map((group) => (
            <section key={group}>
              <h3>{group}</h3>
              {senders
                .filter((sender) => sender.group === group)
                .map((sender) => (
                  <Sender key={sender.id} sender={sender} isOpen={sender.id === open} />
                ))}
            </section>
          ))}
        </div>
      </Card>
      <Card title="About these instructions">
        <ul class="notes">
          {raw === '' && (
            <li>
              Put the token in place of <code>MONITORING_TOKEN</code>.
            </li>
          )}
          <li>
            The address is that of this page, and the ports are those on which the service listens. If a load balancer
            or a container engine maps them, use the mapped ones.
          </li>
          {certificate !== undefined && <CertificateNotes certificate={certificate} />}
        </ul>
      </Card>
    </>
  )
}

type Certificate = NonNullable<ReturnType<typeof certificateView>>

function CertificateNotes({ certificate }: { readonly certificate: Certificate }) {
  const { pem, fingerprint, pin, names, isValidHere } = certificate
  return (
    <>
      {pem !== '' && (
        <li>
          The service has a self-signed certificate. <a href="/setup-guide/certificate.pem">Download it</a>, and copy it
          to <code>/etc/posture-ca.pem</code> on log relays. Its SHA-256 fingerprint is{' '}
          <code class="break">{fingerprint}</code>. Collectors pin its key, which stays when the certificate is renewed:{' '}
          <code class="break">{pin}</code>
        </li>
      )}
      {!isValidHere && (
        <li>
          The certificate is valid for {names.join(', ')}, and not for the name in the address of this page. rsyslog and
          syslog-ng check the name: use one of these, or add it with <code>TLS_NAMES</code>. Collectors check the key.
        </li>
      )}
    </>
  )
}

function Sender({ sender, isOpen }: { readonly sender: ReturnType<typeof senderView>; readonly isOpen: boolean }) {
  const { id, name, about, missing, steps, guide } = sender
  return (
    <details name="sender" id={id} open={isOpen}>
      <summary>
        <strong>{name}</strong>
        <span class="small muted">{about}</span>
        {missing !== '' && <Tag tone="warn">listener is off</Tag>}
      </summary>
      {missing !== '' && (
        <p class="muted">
          The listener that it needs is off. Set <code>{missing}</code> in <code>/etc/posture-service/service.env</code>
          , and restart the service.
        </p>
      )}
      <ol class="instructions">
        {steps.map(({ what, lines }, at) => (
          <li key={what}>
            <p>{what}</p>
            {lines.length > 0 && <Snippet id={`${id}-${at + 1}`} what={what} text={lines.join('\n')} />}
          </li>
        ))}
      </ol>
      <p class="small muted">
        More: <code>docs/{guide}</code>
      </p>
    </details>
  )
}

const PATH = '/setup-guide'

const newToken = z.object({ label: z.string('Enter a label').trim().min(1, 'Enter a label') })

/** Three steps to the first findings: a token, a sender, and the verification. */
export const SETUP_GUIDE_ROUTES: readonly Route[] = [
  page(PATH, 'token.read', (visit) => guidePage(visit, EMPTY_FORM)),
  form(
    PATH,
    'token.generate',
    async (visit) => {
      const { record, raw } = await visit.change('token.generate', visit.read(newToken))
      return visit.redirectToShow(`${PATH}?token=${record.id}`, raw)
    },
    { confirmed: true, again: (visit, state) => guidePage(visit, state) },
  ),
  page(`${PATH}/certificate.pem`, 'token.read', ({ site, request }) => {
    const pem = certificateView(site.ingest, hostNameOf(request.origin))?.pem ?? ''
    if (pem === '') throw new Fault('NOT_FOUND', 'The service has no self-signed certificate')
    return fileAnswer('application/x-pem-file', 'posture-ca.pem', pem)
  }),
]

function guidePage(visit: Visit, form: FormState): Answer {
  const raw = visit.shownOnce<string>() ?? ''
  const view = setupGuideView(visit, visit.request.query.get('token') ?? '', raw)
  return visit.page('Setup', PATH, SetupGuide({ visit, view, form, raw }), { form, showsSecret: raw !== '' })
}

import { SENDER_GROUPS } from '../../engine/admin/senders.ts'
import { FormError, Select } from '../design/form.tsx'
import { Card, Notice, PageHead, Secret, Snippet, Tag } from '../design/parts.tsx'
import type { FormState } from '../form.ts'
import { EMPTY_FORM } from '../form.ts'
import type { CertificateView, SenderView, SetupGuideView, TokenChoice } from '../views/setup-guide.ts'
import { LabelField } from './secrets.tsx'

export interface SetupGuideProps {
  readonly view: SetupGuideView
  readonly form: FormState
  /** The token that was just generated; '' otherwise. One page shows it, once. */
  readonly raw: string
  readonly mayGenerate: boolean
  /** The id of the sender whose instructions are expanded. */
  readonly open: string
}

export function SetupGuide({ view, form, raw, mayGenerate, open }: SetupGuideProps) {
  const { token } = view
  return (
    <>
      <PageHead title="Setup" about="Three steps to the first findings" />
      <Steps current={token === undefined ? 1 : 2} tokenId={token?.id} />
      {token === undefined ? (
        <ChooseToken view={view} form={form} mayGenerate={mayGenerate} />
      ) : (
        <>
          <ChosenToken token={token} raw={raw} />
          <Send view={view} open={open} hasRaw={raw !== ''} />
          <VerifyStep token={token} />
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
function ChooseToken({ view: { tokens }, form, mayGenerate }: Pick<SetupGuideProps, 'view' | 'form' | 'mayGenerate'>) {
  return (
    <div class={mayGenerate && tokens.length > 0 ? 'two' : undefined}>
      {mayGenerate && (
        <Card title="Generate a monitoring token">
          <form class="stack" method="post" action="/setup-guide">
            <p class="muted">A collector or a log sender proves with it that its events are yours.</p>
            <FormError form={form} />
            <LabelField form={form} hint="The sensor or sender that will use it, such as its site." />
            <p>
              <button class="first" type="submit">
                Generate Token
              </button>
            </p>
          </form>
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

function ChosenToken({ token: { label, visible }, raw }: { readonly token: TokenChoice; readonly raw: string }) {
  if (raw !== '') {
    return (
      <Notice title={`Copy the token “${label}” now. It will not be shown again`}>
        <Secret id="secret" value={raw} />
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

interface SendProps {
  readonly view: SetupGuideView
  readonly open: string
  readonly hasRaw: boolean
}

/** Step 2. */
function Send({ view: { senders, certificate }, open, hasRaw }: SendProps) {
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
          {!hasRaw && (
            <li>
              Put the token in place of <code>MONITORING_TOKEN</code>.
            </li>
          )}
          <li>
            The address is that of this page, and the ports are those on which the service listens. If a load balancer
            or a container engine maps them, use the mapped ones.
          </li>
          {certificate !== undefined && <Certificate certificate={certificate} />}
        </ul>
      </Card>
    </>
  )
}

function Certificate({ certificate: { pem, fingerprint, pin, names, isValidHere } }: { certificate: CertificateView }) {
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

function Sender({ sender, isOpen }: { readonly sender: SenderView; readonly isOpen: boolean }) {
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

/** Step 3. */
function VerifyStep({ token: { id } }: { readonly token: TokenChoice }) {
  return (
    <Card title="Verify">
      <p class="row">
        <a class="button first" href={`/monitoring-tokens/${id}/verify`}>
          Verify
        </a>
        <span class="muted">Shows what arrives with this token, for up to five minutes.</span>
      </p>
    </Card>
  )
}

import { SMTP_TLS_MODES, SYSLOG_FORMATS, SYSLOG_TRANSPORTS } from '../../engine/alert/channel-settings.ts'
import { wordsOf } from '../../engine/alert/message.ts'
import type { AlertChannelKind } from '../../engine/store/alert-channels.ts'
import { ALERT_RULES, ALERT_SEVERITIES } from '../../engine/store/alerts.ts'
import { Checks, Field, FormError, Select, TextArea } from '../design/form.tsx'
import { Card, PageHead } from '../design/parts.tsx'
import type { FormState } from '../form.ts'
import { AlertTabs, CHANNELS_PATH } from './alerts.tsx'
import { KIND_NAMES } from './channels.tsx'

interface NewAlertChannelProps {
  readonly kind: AlertChannelKind
  readonly form: FormState
  /** The user has confirmed their identity, so the form is shown. */
  readonly isOpen: boolean
  /** The names of the organization's groups. */
  readonly groups: readonly string[]
}

/** The form of a new channel. */
export function NewAlertChannel(props: NewAlertChannelProps) {
  const { kind, isOpen } = props
  return (
    <>
      <div>
        <p class="crumb">
          <a href={CHANNELS_PATH}>Alert channels</a>
        </p>
        <PageHead title={`Add ${KIND_NAMES[kind]}`} />
      </div>
      <AlertTabs here={CHANNELS_PATH} />
      {isOpen ? <ChannelForm {...props} /> : <Open kind={kind} />}
    </>
  )
}

/** The form opens after a confirmation, so that it is not asked for when a secret is typed. */
function Open({ kind }: Pick<NewAlertChannelProps, 'kind'>) {
  return (
    <Card title="Confirm your identity first">
      <form class="stack" method="post" action={`${CHANNELS_PATH}/open`}>
        <p class="muted">A new channel sends findings of this organization to a receiver.</p>
        <input type="hidden" name="kind" value={kind} />
        <div>
          <button class="first" type="submit">
            Continue
          </button>
        </div>
      </form>
    </Card>
  )
}

function ChannelForm({ kind, form, groups }: NewAlertChannelProps) {
  return (
    <section class="card narrow">
      <form class="stack body" method="post" action={`${CHANNELS_PATH}/new`}>
        <FormError form={form} />
        <input type="hidden" name="kind" value={kind} />
        <Field name="name" label="Name" form={form} required maxLength={255} hint="For lists, such as SOC." />
        <KindFields kind={kind} form={form} />
        <Select
          name="severityMin"
          label="Severity from"
          form={form}
          value="low"
          options={ALERT_SEVERITIES.map((severity) => [severity, severity])}
        />
        <details open={form.values.all('rules').length + form.values.all('groups').length > 0}>
          <summary>Only some rules or groups</summary>
          <Checks
            name="rules"
            label="Rules; without a choice, all"
            form={form}
            options={ALERT_RULES.map((rule) => [rule, wordsOf(rule)])}
          />
          {groups.length > 0 && (
            <Checks
              name="groups"
              label="Groups of five people or more; without a choice, alerts about any group, and about none"
              form={form}
              options={groups.map((name) => [name, name])}
            />
          )}
        </details>
        <details open={form.errors['ca'] !== undefined}>
          <summary>Private certificate authority</summary>
          <TextArea
            name="ca"
            label="Certificates"
            form={form}
            rows={4}
            mono
            hint="In PEM. Without them, the certificates of the system are trusted."
          />
        </details>
        <p class="small muted">
          The settings are stored encrypted. The service connects to public addresses, and to networks of{' '}
          <code>--outbound-networks</code>.
        </p>
        <div>
          <button class="first" type="submit">
            Add Channel
          </button>
        </div>
      </form>
    </section>
  )
}

const URL_HINTS = {
  webhook: 'Such as https://alerts.example.com/posture. No page shows its path.',
  slack: 'The URL of an incoming webhook. No page shows it.',
  teams: 'The URL of a workflow with a webhook. No page shows it.',
} as const

function KindFields({ kind, form }: Pick<NewAlertChannelProps, 'kind' | 'form'>) {
  switch (kind) {
    case 'webhook':
    case 'slack':
    case 'teams':
      return (
        <Field
          name="url"
          label="URL"
          type={kind === 'webhook' ? 'text' : 'password'}
          form={form}
          required
          maxLength={1000}
          hint={URL_HINTS[kind]}
        />
      )
    case 'smtp':
      return <MailFields form={form} />
    case 'syslog':
      return <SyslogFields form={form} />
    default:
      return kind satisfies never
  }
}

type FormProps = Pick<NewAlertChannelProps, 'form'>

const TLS_NAMES: Readonly<Record<(typeof SMTP_TLS_MODES)[number], string>> = {
  starttls: 'STARTTLS (port 587)',
  implicit: 'TLS (port 465)',
  off: 'None (port 25)',
}

function MailFields({ form }: FormProps) {
  return (
    <>
      <Host form={form} label="Mail server" />
      <Select
        name="tls"
        label="Encryption"
        form={form}
        options={SMTP_TLS_MODES.map((mode) => [mode, TLS_NAMES[mode]])}
      />
      <Field name="user" label="User" form={form} maxLength={1000} hint="Empty if the server asks for none." />
      <Field name="password" label="Password" type="password" form={form} maxLength={1000} hint="No page shows it." />
      <Field name="from" label="From" form={form} required maxLength={254} hint="Such as posture@acme.example." />
      <TextArea name="to" label="To" form={form} rows={2} required hint="One address per line, at most 20." />
    </>
  )
}

const TRANSPORT_NAMES: Readonly<Record<(typeof SYSLOG_TRANSPORTS)[number], string>> = {
  tls: 'TLS (port 6514)',
  tcp: 'TCP (port 514)',
  udp: 'UDP (port 514)',
}

function SyslogFields({ form }: FormProps) {
  return (
    <>
      <Host form={form} label="Receiver" />
      <Select
        name="transport"
        label="Transport"
        form={form}
        options={SYSLOG_TRANSPORTS.map((transport) => [transport, TRANSPORT_NAMES[transport]])}
      />
      <Select
        name="format"
        label="Format"
        form={form}
        options={SYSLOG_FORMATS.map((format) => [format, format.toUpperCase()])}
      />
    </>
  )
}

function Host({ form, label }: FormProps & { readonly label: string }) {
  return (
    <>
      <Field name="host" label={label} form={form} required maxLength={255} hint="A host name or an address." />
      <Field name="port" label="Port" type="number" form={form} hint="Empty for the default one." />
    </>
  )
}

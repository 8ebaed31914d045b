import { checkedChannel, type GivenChannel, targetFault } from '../../engine/admin/alert-settings.ts'
import { sealedChannel } from '../../engine/admin/alerts.ts'
import { SMTP_TLS_MODES, SYSLOG_FORMATS, SYSLOG_TRANSPORTS } from '../../engine/alert/channel-settings.ts'
import { wordsOf } from '../../engine/alert/message.ts'
import { groupNamesOf } from '../../engine/scan/group-use.ts'
import { ALERT_CHANNEL_KINDS, type AlertChannelKind } from '../../engine/store/alert-channels.ts'
import { ALERT_RULES, ALERT_SEVERITIES } from '../../engine/store/alerts.ts'
import { isConfirmed } from '../confirmation.ts'
import { Checks, Field, Form, Select, TextArea } from '../design/form.tsx'
import { Card, NarrowCard, PageHead } from '../design/parts.tsx'
import { EMPTY_FORM, FormFields, type FormState, RejectedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { form, page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'
import { ALERTS_PATH, AlertTabs, CHANNELS_PATH } from './alerts.tsx'
import { KIND_NAMES, type ShownChannel } from './channels.tsx'

interface NewAlertChannelProps {
  readonly kind: AlertChannelKind
  readonly form: FormState
  /** The user has confirmed their identity, so the form is shown. */
  readonly isOpen: boolean
  /** The names of the organization's groups. */
  readonly groups: readonly string[]
}

/** The form of a new channel. */
function NewAlertChannel(props: NewAlertChannelProps) {
  const { kind, isOpen } = props
  return (
    <>
      <PageHead crumb={<a href={CHANNELS_PATH}>Alert channels</a>} title={`Add ${KIND_NAMES[kind]}`} />
      <AlertTabs here={CHANNELS_PATH} />
      {isOpen ? <ChannelForm {...props} /> : <Open kind={kind} />}
    </>
  )
}

/** The form opens after a confirmation, so that it is not asked for when a secret is typed. */
function Open({ kind }: Pick<NewAlertChannelProps, 'kind'>) {
  return (
    <Card title="Confirm your identity first">
      <Form action={`${CHANNELS_PATH}/open`} submit="Continue">
        <p class="muted">A new channel sends findings of this organization to a receiver.</p>
        <input type="hidden" name="kind" value={kind} />
      </Form>
    </Card>
  )
}

function ChannelForm({ kind, form, groups }: NewAlertChannelProps) {
  return (
    <NarrowCard>
      <Form action={`${CHANNELS_PATH}/new`} form={form} submit="Add Channel">
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
      </Form>
    </NarrowCard>
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

/** No page repeats their values. */
const SECRET_FIELDS = ['url', 'password']

export const NEW_CHANNEL_ROUTES: readonly Route[] = [
  page(`${CHANNELS_PATH}/new`, 'alert-channel.add', (visit) =>
    newPage(visit, kindOf(visit.request.query.get('kind') ?? ''), EMPTY_FORM),
  ),
  // Asks for the confirmation first, because a secret would have to be typed again.
  form(
    `${CHANNELS_PATH}/open`,
    'alert-channel.add',
    ({ request }) => redirect(`${CHANNELS_PATH}/new?kind=${kindOf(request.fields.text('kind'))}`),
    { confirmed: true },
  ),
  form(`${CHANNELS_PATH}/new`, 'alert-channel.add', add, {
    confirmed: true,
    secretFields: SECRET_FIELDS,
    again: (visit, state) => {
      const values = new FormFields(state.values.without(...SECRET_FIELDS))
      return newPage(visit, kindOf(values.text('kind')), { ...state, values })
    },
  }),
]

function kindOf(text: string): AlertChannelKind {
  return ALERT_CHANNEL_KINDS.find((each) => each === text) ?? 'webhook'
}

/** The fields of the kind that have a value; the receivers of mail as a list. */
function givenChannel(fields: FormFields): GivenChannel {
  const { to = '', ...texts } = fields.toObject() as Record<string, string>
  const receivers = to.split(/[\s,]+/).filter((each) => each !== '')
  const given = Object.entries(texts).filter(([, text]) => text !== '')
  const kind = kindOf(fields.text('kind'))
  return { ...Object.fromEntries(given), ...(receivers.length > 0 ? { to: receivers } : {}), kind }
}

async function add(visit: Visit): Promise<Answer> {
  const { site, organization, request } = visit
  const { fields } = request
  const severityMin = ALERT_SEVERITIES.find((each) => each === fields.text('severityMin'))
  const name = fields.text('name').trim()
  const checked = checkedChannel(givenChannel(fields))
  const errors: Record<string, string> = {}
  if (severityMin === undefined) errors['severityMin'] = 'Choose a severity'
  if (name === '') errors['name'] = 'Enter a name'
  if (checked.kind === 'invalid') for (const { name, message } of checked.faults) errors[name] ??= message
  const refused = checked.kind === 'invalid' ? undefined : targetFault(checked.settings, site.channelTests.allowed)
  if (refused !== undefined) errors[refused.name] = refused.message
  if (checked.kind === 'invalid' || severityMin === undefined || Object.keys(errors).length > 0) {
    throw new RejectedForm(errors)
  }
  const { settings } = checked
  const rules = ALERT_RULES.filter((rule) => fields.all('rules').includes(rule))
  const groups = fields.all('groups')
  const filter = { ...(rules.length > 0 && { rules }), ...(groups.length > 0 && { groups }) }
  const channel = { name, severityMin, ...filter, settings }
  await visit.change('alert-channel.add', sealedChannel(site.secrets, organization, channel))
  if (settings.kind !== 'webhook') return redirect(`${CHANNELS_PATH}?done=added`)
  return visit.redirectToShow(CHANNELS_PATH, { created: { name, secret: settings.secret } } satisfies ShownChannel)
}

function newPage(visit: Visit, kind: AlertChannelKind, form: FormState): Answer {
  const groups = groupNamesOf(visit.site.store, visit.organization)
  const content = NewAlertChannel({ kind, form, isOpen: isConfirmed(visit), groups })
  return visit.page('Add channel', ALERTS_PATH, content, { form })
}

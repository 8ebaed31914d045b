import { createHash } from 'node:crypto'
import { lastNotified, type ManagerDraft, mailChannels, managerDraft } from '../../engine/admin/managers.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { MANAGER_TEXT_BYTES_MAX } from '../../engine/limits.ts'
import type { PlatformGroup } from '../../engine/scan/platform-groups.ts'
import type { AuditEntry } from '../../engine/store/audit-log.ts'
import { mayNameToManager } from '../../engine/store/organizations.ts'
import { platformReading, registeredPlatform } from '../clients/of-platform.tsx'
import { Form, Hidden, Select, TextArea } from '../design/form.tsx'
import {
  Card,
  countOf,
  countText,
  Empty,
  lastDays,
  PageHead,
  PlatformLink,
  platformPath,
  Tag,
  Time,
} from '../design/parts.tsx'
import { type Column, countColumn, Table, textColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { auditedPage, form, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const PATH = '/platforms/:name/managers'

export const MANAGER_ROUTES: readonly Route[] = [
  auditedPage(PATH, platformReading, (visit, { name }) => managersPage(visit, name, EMPTY_FORM)),
  form(
    PATH,
    'manager.notify',
    async (visit, { name }) => {
      const { fields } = visit.request
      const platform = { id: registeredPlatform(visit, name).id, name }
      const { range, notified } = managerDraft(visit.site.store, visit.organization, platform, visit.nowMs)
      // A mail cannot be recalled, so it goes only to managers that the page has shown.
      if (fields.text('receivers') !== receiversHash(notified))
        throw new Fault('CONFLICT', 'the groups or their managers have changed meanwhile; look at them again')
      const groups = notified.map((group) => group.name)
      const channel = fields.text('channel') || undefined
      await visit.change('manager.notify', { platform, groups, range, text: fields.text('text'), channel })
      return redirect(`${managersPath(name)}?done=sent`)
    },
    { again: (visit, state, { name }) => managersPage(visit, name, state) },
  ),
]

export function managersPath(platform: string): string {
  return `${platformPath(platform)}/managers`
}

function receiversHash(groups: readonly PlatformGroup[]): string {
  const receivers = groups.map(({ name, manager }) => [name, manager]).sort()
  return createHash('sha256').update(JSON.stringify(receivers)).digest('base64url')
}

function managersPage(visit: Visit, name: string, form: FormState): Answer {
  const { site, organization, nowMs } = visit
  const draft = managerDraft(site.store, organization, { id: registeredPlatform(visit, name).id, name }, nowMs)
  const done = { sent: 'The mails are being sent. Alert channels shows mails that could not be sent' }
  return visit.page(`Notify managers: ${name}`, '/platforms', Managers({ visit, name, draft, form }), { form, done })
}

interface ManagersProps {
  readonly visit: Visit
  readonly name: string
  readonly draft: ManagerDraft
  readonly form: FormState
}

const COLUMNS: readonly Column<PlatformGroup>[] = [
  textColumn('group', 'Group', ({ name }) => name),
  {
    ...textColumn('manager', 'Manager', ({ manager }: PlatformGroup) => manager),
    cell: ({ manager }) => (manager === '' ? Tag({ children: 'none' }) : <span class="break">{manager}</span>),
  },
  countColumn('people', 'People', ({ people }) => people.length),
]

function Managers(props: ManagersProps) {
  const { visit, name, draft } = props
  const { site, organization } = visit
  const mails = draft.notified.length
  return (
    <>
      <PageHead
        crumb={
          <>
            <a href="/platforms">Platforms</a> / <PlatformLink name={name} />
          </>
        }
        title="Notify managers"
        about={`One mail to the manager of each group that used ${name} in the ${lastDays(organization.evidenceWindowDays)}`}
      />
      <Last last={lastNotified(site.store, organization.id, name)} nowMs={visit.nowMs} />
      {site.store.clientErasures.isErasing(organization.id) ? (
        <Empty title="Stored clients are being erased">
          <p class="muted">The next scan finds the groups again.</p>
        </Empty>
      ) : draft.groups.length === 0 ? (
        <Empty title={`No group used ${name}`}>
          <p class="muted">Import groups with their managers first.</p>
          <a class="button" href="/client-groups">
            Groups
          </a>
        </Empty>
      ) : (
        <>
          <Card
            title="Who gets a mail"
            note={`${countOf(mails, 'manager')} of ${countOf(draft.groups.length, 'group')}`}
            bare
          >
            <Table visit={visit} id="managers" label="Who gets a mail" columns={COLUMNS} rows={draft.groups} />
          </Card>
          {mails > 0 && <Mail {...props} />}
        </>
      )}
    </>
  )
}

function Last({ last, nowMs }: { readonly last: AuditEntry | undefined; readonly nowMs: number }) {
  if (last === undefined) return null
  const { timeMs, actor, details } = last
  const groups = details['groups']
  return (
    <Card title="Sent last" note={<Time ms={timeMs} nowMs={nowMs} />}>
      <p class="break">
        By {actor.replace(/^member /, '')}, through {String(details['channel'])}, to the managers of{' '}
        {Array.isArray(groups) ? groups.join(', ') : ''}.
      </p>
    </Card>
  )
}

function Mail({ visit, name, draft: { text, notified }, form }: ManagersProps) {
  const channels = mailChannels(visit.site.store, visit.organization.id)
  if (channels.length === 0) {
    return (
      <Empty title="No alert channel sends mail">
        <p class="muted">Add one of the kind mail. Its server sends the mails.</p>
        <a class="button" href="/alerts/channels">
          Alert channels
        </a>
      </Empty>
    )
  }
  const people = mayNameToManager(visit.organization) ? 'the names' : 'the number'
  return (
    <Card title="The mail">
      <Form action={managersPath(name)} form={form} submit={`Send ${countOf(notified.length, 'Mail')}`}>
        <Hidden fields={[['receivers', receiversHash(notified)]]} />
        {channels.length > 1 && (
          <Select
            name="channel"
            label="Alert channel"
            form={form}
            options={channels.map(({ id, name }) => [id, name])}
          />
        )}
        <TextArea
          name="text"
          label="Text"
          form={form}
          rows={8}
          required
          value={text}
          hint={`At most ${countText(MANAGER_TEXT_BYTES_MAX)} bytes. The mail adds the group and ${people} of its people who used ${name}.`}
        />
      </Form>
    </Card>
  )
}

import { createHash } from 'node:crypto'
import { lastNotified, type ManagerDraft, mailChannels, managerDraft } from '../../engine/admin/managers.ts'
import { Fault } from '../../engine/kernel/process/error-codes.ts'
import { MANAGER_TEXT_BYTES_MAX } from '../../engine/limits.ts'
import type { PlatformGroup } from '../../engine/scan/platform-groups.ts'
import type { AlertChannel } from '../../engine/store/alert-channels.ts'
import type { AuditEntry } from '../../engine/store/audit-log.ts'
import { mayNameToManager } from '../../engine/store/organizations.ts'
import type { Platform } from '../../registry/platform.ts'
import { FormError, Select, TextArea } from '../design/form.tsx'
import { Card, countOf, countText, Empty, lastDays, Notice, PageHead, Tag, Time } from '../design/parts.tsx'
import { type Column, countColumn, Table, textColumn } from '../design/table.tsx'
import { EMPTY_FORM, type FormState, refusedForm } from '../form.ts'
import { type Answer, redirect } from '../http/answer.ts'
import { auditedPage, form, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

const PATH = '/platforms/:name/managers'

export const MANAGER_ROUTES: readonly Route[] = [
  auditedPage(
    PATH,
    (visit, { name }) => ({ platform: registered(visit, name).name }),
    (visit, { name }) => managersPage(visit, name, EMPTY_FORM, 200),
  ),
  form(PATH, 'manager.notify', async (visit, { name }) => {
    const { fields } = visit.request
    const { site } = visit
    const { id } = registered(visit, name)
    const platform = { id, name }
    const { range, notified } = managerDraft(site.store, visit.organization, platform, visit.nowMs)
    const groups = notified.map((group) => group.name)
    const channel = fields.text('channel') || undefined
    try {
      // A mail cannot be recalled, so it goes only to managers that the page has shown.
      if (fields.text('receivers') !== receiversHash(notified))
        throw new Fault('CONFLICT', 'the groups or their managers have changed meanwhile; look at them again')
      await visit.change('manager.notify', {
        platform,
        groups,
        range,
        text: fields.text('text'),
        channel,
      })
    } catch (error) {
      const { state, status } = refusedForm(error, fields)
      return site.store.environment.read(() => managersPage(visit, name, state, status))
    }
    return redirect(`${managersPath(name)}?done=sent`)
  }),
]

export function managersPath(platform: string): string {
  return `/platforms/${encodeURIComponent(platform)}/managers`
}

/** @throws Fault NOT_FOUND */
function registered({ site, organization }: Visit, name: string): Platform {
  const platform = site.registry.catalogOf(organization.id).platforms.find((each) => each.name === name)
  if (platform !== undefined) return platform
  throw new Fault('NOT_FOUND', `No platform ${JSON.stringify(name)} in the registry`)
}

function receiversHash(groups: readonly PlatformGroup[]): string {
  const receivers = groups.map(({ name, manager }) => [name, manager]).sort()
  return createHash('sha256').update(JSON.stringify(receivers)).digest('base64url')
}

function managersPage(visit: Visit, name: string, state: FormState, status: number): Answer {
  const { site, organization, nowMs, request } = visit
  const { id } = registered(visit, name)
  const content = Managers({
    name,
    ...managerDraft(site.store, organization, { id, name }, nowMs),
    channels: mailChannels(site.store, organization.id),
    last: lastNotified(site.store, organization.id, name),
    namesPeople: mayNameToManager(organization),
    windowDays: organization.evidenceWindowDays,
    form: state,
    nowMs,
    isSent: request.query.get('done') === 'sent',
    isErasing: site.store.clientErasures.isErasing(organization.id),
  })
  return visit.page(`Notify managers: ${name}`, '/platforms', content, { status })
}

interface ManagersProps extends ManagerDraft {
  readonly name: string
  readonly channels: readonly AlertChannel[]
  readonly last: AuditEntry | undefined
  readonly namesPeople: boolean
  readonly windowDays: number
  readonly form: FormState
  readonly nowMs: number
  readonly isSent: boolean
  readonly isErasing: boolean
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
  const { name, groups, notified, windowDays, isSent, isErasing } = props
  const mails = notified.length
  return (
    <>
      <div>
        <p class="crumb">
          <a href="/platforms">Platforms</a> / <a href={`/platforms/${encodeURIComponent(name)}`}>{name}</a>
        </p>
        <PageHead
          title="Notify managers"
          about={`One mail to the manager of each group that used ${name} in the ${lastDays(windowDays)}`}
        />
      </div>
      {isSent && (
        <Notice title="The mails are being sent">
          <p>
            <a href="/alerts/channels">Alert channels</a> shows mails that could not be sent.
          </p>
        </Notice>
      )}
      <Last {...props} />
      {isErasing ? (
        <Empty title="Stored clients are being erased">
          <p class="muted">The next scan finds the groups again.</p>
        </Empty>
      ) : groups.length === 0 ? (
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
            note={`${countOf(mails, 'manager')} of ${countOf(groups.length, 'group')}`}
            bare
          >
            <Table id="managers" label="Who gets a mail" columns={COLUMNS} rows={groups} />
          </Card>
          {mails > 0 && <Mail {...props} />}
        </>
      )}
    </>
  )
}

function Last({ last, nowMs }: ManagersProps) {
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

function Mail({ name, channels, text, namesPeople, form: state, notified }: ManagersProps) {
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
  return (
    <Card title="The mail">
      <form class="stack" method="post" action={managersPath(name)}>
        <FormError form={state} />
        <input type="hidden" name="receivers" value={receiversHash(notified)} />
        {channels.length > 1 && (
          <Select
            name="channel"
            label="Alert channel"
            form={state}
            options={channels.map((channel) => [channel.id, channel.name])}
          />
        )}
        <TextArea
          name="text"
          label="Text"
          form={state}
          rows={8}
          required
          value={text}
          hint={`At most ${countText(MANAGER_TEXT_BYTES_MAX)} bytes. The mail adds the group and ${
            namesPeople ? 'the names' : 'the number'
          } of its people who used ${name}.`}
        />
        <div>
          <button class="first" type="submit">
            Send {countOf(notified.length, 'Mail')}
          </button>
        </div>
      </form>
    </Card>
  )
}

import type { Action } from '../../engine/admin/actions.ts'
import type { AuditEntry } from '../../engine/store/audit-log.ts'
import { CSV_ROWS_MAX, CsvLink, FilterSearch, Filters, PagesLinks } from '../design/list.tsx'
import { Empty, PageHead } from '../design/parts.tsx'
import { type Column, Table, textColumn, timeColumn } from '../design/table.tsx'
import { csvFile } from '../http/csv.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

/** The actions in the audit log, in words. */
const ACTION_NAMES: Readonly<Record<Action, string>> = {
  'organization.create': 'Organization created',
  'organization.plan': 'Plan changed',
  'organization.remove': 'Organization removed',
  'organization.rename': 'Organization renamed',
  'organization.set': 'Organization settings changed',
  'organization.read': 'Organization settings read',
  'store.backup': 'Backup written',
  'store.restore': 'Backup restored',
  'store.leave-cluster': 'Cluster left',
  'registry.add-service-wide': 'Platforms added for all organizations',
  'registry.remove-service-wide': 'Platforms removed for all organizations',
  'registry.provision': 'Registry file applied',
  'registry.update': 'Registry updated',
  'registry.rollback': 'Registry update undone',
  'registry.add': 'Custom platforms added',
  'registry.remove': 'Custom platforms removed',
  'candidate.dismiss': 'Candidate dismissed',
  'candidate.restore': 'Candidate restored',
  'discovery.read': 'Findings read',
  'client.read': 'Clients read',
  'client.reveal': 'Pseudonym decrypted',
  'client.export': 'Data of a person exported',
  'client.erase': 'Data of a person erased',
  'client.set': 'Storage of clients changed',
  'client.name': 'Names of clients changed',
  'manager.notify': 'Managers notified',
  'source.read': 'Sources read',
  'assessment.read': 'Assessments read',
  'recommendation.read': 'Recommendations read',
  'member.read': 'Members read',
  'token.read': 'Monitoring tokens read',
  'token.verify': 'Monitoring token verified',
  'api-key.read': 'API keys read',
  'audit.read': 'Audit log read',
  'file.try': 'File tried',
  'member.add': 'Member added',
  'member.role': 'Role changed',
  'member.remove': 'Member removed',
  'member.allow': 'Removed member allowed again',
  'member.invite': 'Member invited',
  'member.accept': 'Invitation accepted',
  'invitation.withdraw': 'Invitation withdrawn',
  'sign-in.read': 'Sign-in settings read',
  'sign-in.set': 'Sign-in settings changed',
  'sign-in.remove': 'Identity provider removed',
  'sign-in.connect': 'Account at the identity provider connected',
  'setup-link.create': 'Setup link created',
  'password-link.create': 'Password link created',
  'password.set': 'Password changed',
  'passkey.add': 'Passkey added',
  'passkey.rename': 'Passkey renamed',
  'passkey.remove': 'Passkey removed',
  'passkey.block': 'Passkey blocked',
  'session.create': 'Signed in',
  'session.end': 'Session ended',
  'api-key.create': 'API key created',
  'api-key.rotate': 'API key rotated',
  'api-key.revoke': 'API key revoked',
  'token.generate': 'Monitoring token generated',
  'token.set': 'Monitoring token changed',
  'token.revoke': 'Monitoring token revoked',
  'block-list-link.read': 'Block lists viewed',
  'block-list-link.create': 'Block list link created',
  'block-list-link.revoke': 'Block list link revoked',
  'token.bind': 'Monitoring token bound',
  'token.unbind': 'Monitoring token unbound',
  'approval.add': 'Platform approved',
  'approval.reject': 'Platform rejected',
  'approval.remove': 'Decision withdrawn',
  'approval.undo': 'Decision undone',
  'scan.request': 'Scan requested',
  'ingest.file': 'Log file read',
  'retention.set': 'Retention changed',
  'retention.apply': 'Retention applied',
  'assessment.create': 'Assessment created',
  'assessment.change': 'Assessment answered',
  'assessment.assign': 'Item of an assessment assigned',
  'assessment.comment': 'Comment on an item of an assessment',
  'assessment.submit': 'Item of an assessment submitted for review',
  'assessment.approve': 'Item of an assessment approved or reopened',
  'assessment.update': 'Assessment updated to the current items',
  'assessment.import': 'Assessment imported',
  'assessment.complete': 'Assessment completed',
  'assessment.remove': 'Assessment removed',
  'framework.add': 'Own framework added',
  'framework.remove': 'Own framework removed',
  'recommendation.status': 'Recommendation status changed',
  'recommendation.owner': 'Recommendation assigned',
  'report.create': 'Report written',
  'report-schedule.add': 'Report scheduled',
  'view.save': 'View saved',
  'view.remove': 'View removed',
  'report-schedule.remove': 'Scheduled report removed',
  'alert.read': 'Alerts viewed',
  'alert-channel.add': 'Alert channel added',
  'alert-channel.remove': 'Alert channel removed',
  'alert-channel.test': 'Alert channel tested',
  'alert-rule.set': 'Threshold of an alert rule set',
  'alert-rule.mute': 'Alert rule muted',
  'alert-rule.unmute': 'Alert rule active again',
  'alert.retry': 'Dead letters sent again',
  'alert.discard': 'Dead letters deleted',
}

/** The words for an action. An entry of another release may have an unknown one, which stays. */
function actionName(action: string): string {
  return Object.hasOwn(ACTION_NAMES, action) ? ACTION_NAMES[action as Action] : action
}

const PATH = '/audit-log'
const AUDIT_ENTRIES_PER_PAGE = 50
/** Maximum number of entries that a filter reads for one page. */
const READ_MAX = 5000

/** The audit log, newest first, from the query's `before`. `q` filters by text. */
function auditView({ site, organization, request: { query } }: Visit, countMax: number) {
  const { auditLog } = site.store
  const last = auditLog.lastSequence(organization.id)
  const before = Number.parseInt(query.get('before') ?? '', 10) || last + 1
  const search = (query.get('q') ?? '').trim().slice(0, 100)
  const read = auditLog.before(organization.id, before, search === '' ? countMax : Math.max(READ_MAX, countMax))
  const rows = read.filter((entry) => search === '' || textOf(entry).includes(search.toLowerCase())).slice(0, countMax)
  // After a full page, the next page begins after its last row; otherwise, after the last entry
  // that was read.
  const oldest = rows.length === countMax ? rows.at(-1) : read.at(-1)
  const hasOlder = oldest !== undefined && auditLog.before(organization.id, oldest.sequence, 1).length > 0
  const olderBefore = hasOlder ? String(oldest.sequence) : undefined
  return { rows, search, olderBefore, isFirstPage: before > last, isEmpty: last === 0 }
}

/** The details as `name: value`, comma-separated. */
function detailsText({ details }: AuditEntry): string {
  return Object.entries(details)
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(' ') : value}`)
    .join(', ')
}

function textOf(entry: AuditEntry): string {
  const { actor, action, subject } = entry
  return `${actor} ${action} ${actionName(action)} ${subject} ${detailsText(entry)}`.toLowerCase()
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  timeColumn('time', 'Time', ({ timeMs }) => timeMs),
  {
    ...textColumn('actor', 'Actor', ({ actor }: AuditEntry) => actor),
    cell: ({ actor }) => <span class="break">{actor}</span>,
  },
  {
    id: 'action',
    name: 'Action',
    cell: ({ action }) => <span title={action}>{actionName(action)}</span>,
    csv: ({ action }) => action,
  },
  {
    id: 'subject',
    name: 'Subject',
    cell: (entry) => (
      <>
        <span class="break">{entry.subject}</span>
        <p class="small muted break">{detailsText(entry)}</p>
      </>
    ),
    csv: ({ subject }) => subject,
  },
  { id: 'details', name: 'Details', csv: detailsText },
]

function Audit({ visit }: { readonly visit: Visit }) {
  const { query } = visit.request
  const { rows, search, olderBefore, isFirstPage, isEmpty } = auditView(visit, AUDIT_ENTRIES_PER_PAGE)
  if (isEmpty) {
    return (
      <>
        <PageHead title="Audit log" />
        <Empty title="Nothing has changed yet">
          <p class="muted">Every change of keys, tokens, members, approvals and settings appears here.</p>
          <a class="button first" href="/setup-guide">
            Set up a sender
          </a>
        </Empty>
      </>
    )
  }
  return (
    <>
      <PageHead title="Audit log" about="Who changed what, and when">
        <CsvLink path={PATH} query={query} />
      </PageHead>
      <Filters action={PATH}>
        <FilterSearch value={search} />
      </Filters>
      {rows.length === 0 ? (
        <Empty title="No entry matches">
          <p>
            <a href={PATH}>Show all entries</a>
          </p>
        </Empty>
      ) : (
        <div class="card">
          <Table visit={visit} id="audit" label="Audit log" columns={COLUMNS} rows={rows} stacked />
        </div>
      )}
      {!isFirstPage && (
        <p>
          <a href={search === '' ? PATH : `${PATH}?${new URLSearchParams({ q: search })}`}>Newest entries</a>
        </p>
      )}
      <PagesLinks query={query} name="before" older={olderBefore} newerText="Newer entries" olderText="Older entries" />
    </>
  )
}

export const AUDIT_ROUTES: readonly Route[] = [
  page(PATH, 'audit.read', (visit) => visit.page('Audit log', PATH, Audit({ visit }))),
  csvFile(PATH, 'audit.read', COLUMNS, (visit) => auditView(visit, CSV_ROWS_MAX + 1).rows),
]

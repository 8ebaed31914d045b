import { type AlertDelivery, deliveriesOf } from '../../engine/admin/alert-rows.ts'
import { pathOf } from '../../engine/alert/completed-message.ts'
import { wordsOf } from '../../engine/alert/message.ts'
import { ALERTS_MAX } from '../../engine/limits.ts'
import { ALERT_RULES, ALERT_SEVERITIES, type Alert, type AlertSeverity } from '../../engine/store/alerts.ts'
import { CsvLink, FilterSelect, Filters, PagedTable, paged } from '../design/list.tsx'
import { countText, Empty, PageHead, Tag, type Tone } from '../design/parts.tsx'
import { type Column, csvOnly, textColumn, timeColumn } from '../design/table.tsx'
import { csvFile } from '../http/csv.ts'
import { page, type Route } from '../http/router.ts'
import type { Visit } from '../http/visit.ts'

/** Alerts that the page searches, and that it shows at once. */
const ALERTS_READ_MAX = 1000
const ALERTS_PER_PAGE = 50

export const ALERTS_PATH = '/alerts'
export const RULES_PATH = '/alerts/rules'
export const CHANNELS_PATH = '/alerts/channels'
export const DEAD_LETTERS_PATH = '/alerts/dead-letters'

const TABS = [
  [ALERTS_PATH, 'Alerts'],
  [RULES_PATH, 'Rules'],
  [CHANNELS_PATH, 'Channels'],
  [DEAD_LETTERS_PATH, 'Dead letters'],
] as const

/** Links between the pages of alerts. */
export function AlertTabs({ here }: { readonly here: string }) {
  return (
    <nav class="tabs" aria-label="Alerts">
      {TABS.map(([path, name]) => (
        <a key={path} href={path} aria-current={path === here ? 'page' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  )
}

interface AlertRow {
  readonly alert: Alert
  readonly deliveries: readonly AlertDelivery[]
  /** The page about the subject of the alert, if there is one. */
  readonly path: string | undefined
}

/** The alerts with the query's `rule` and `severity`, newest first, of the last `countMax`. */
function filtered({ site, organization, request: { query } }: Visit, countMax: number) {
  const rule = ALERT_RULES.find((each) => each === query.get('rule'))
  const severity = ALERT_SEVERITIES.find((each) => each === query.get('severity'))
  const read = site.store.alerts.newest(organization.id, countMax)
  const least = severity === undefined ? 0 : ALERT_SEVERITIES.indexOf(severity)
  const alerts = read.filter((alert) => {
    return (rule === undefined || alert.rule === rule) && ALERT_SEVERITIES.indexOf(alert.severity) >= least
  })
  return { alerts, rule, severity, isEmpty: read.length === 0 }
}

function alertRows({ site, organization }: Visit, alerts: readonly Alert[]): AlertRow[] {
  const { platforms } = site.registry.catalogOf(organization.id)
  const known = new Set(platforms.map(({ name }) => name))
  return alerts.map((alert) => {
    const { kind, name } = alert.subject
    const isGone = (kind === 'platform' || kind === 'approval') && !known.has(name)
    return { alert, deliveries: deliveriesOf(site.store, alert), path: isGone ? undefined : pathOf(alert) }
  })
}

const SEVERITY_TONES: Readonly<Record<AlertSeverity, Tone>> = {
  informational: 'plain',
  low: 'plain',
  medium: 'warn',
  high: 'bad',
  critical: 'bad',
}

export function SeverityTag({ severity }: { readonly severity: AlertSeverity }) {
  return Tag({ tone: SEVERITY_TONES[severity], children: severity })
}

const DELIVERIES: Readonly<Record<AlertDelivery['state'], readonly [word: string, tone: Tone]>> = {
  waiting: ['waiting', 'warn'],
  delivered: ['delivered', 'good'],
  dead: ['dead letter', 'bad'],
  retried: ['queued again', 'plain'],
  discarded: ['deleted', 'plain'],
  dropped: ['dropped', 'bad'],
  'channel removed': ['channel removed', 'plain'],
  unknown: ['no longer known', 'plain'],
}

const COLUMNS: readonly Column<AlertRow>[] = [
  timeColumn('time', 'Time', ({ alert }) => alert.createdAtMs),
  {
    ...textColumn('severity', 'Severity', ({ alert }: AlertRow) => alert.severity),
    cell: ({ alert }) => SeverityTag(alert),
    wide: true,
  },
  {
    id: 'alert',
    name: 'Alert',
    cell: ({ alert: { title, rule, details, groups = [] }, path }) => (
      <>
        {path === undefined ? (
          <span class="break">{title}</span>
        ) : (
          <a class="break" href={path}>
            {title}
          </a>
        )}
        <p class="small muted break">
          {[wordsOf(rule), ...groups].join(' · ')}
          {details['risk_reason'] !== undefined && <span class="wide-only"> · {details['risk_reason']}</span>}
        </p>
      </>
    ),
    csv: ({ alert }) => alert.title,
  },
  csvOnly(textColumn('rule', 'Rule', ({ alert }) => alert.rule)),
  {
    id: 'delivery',
    name: 'Delivery',
    cell: ({ deliveries }) =>
      deliveries.length === 0 ? (
        <span class="muted">no channel</span>
      ) : (
        <ul class="facts">
          {deliveries.map(({ channel, state }) => (
            <li key={channel}>
              {channel} <Tag tone={DELIVERIES[state][1]}>{DELIVERIES[state][0]}</Tag>
            </li>
          ))}
        </ul>
      ),
    csv: ({ deliveries }) => deliveries.map(({ channel, state }) => `${channel}: ${DELIVERIES[state][0]}`).join(', '),
  },
  csvOnly(textColumn('id', 'Id', ({ alert }) => alert.id)),
]

/** The last alerts, with their deliveries. */
function Alerts({ visit }: { readonly visit: Visit }) {
  const { query } = visit.request
  const { alerts, rule, severity, isEmpty } = filtered(visit, ALERTS_READ_MAX)
  const page = paged(alerts, query, 'page', ALERTS_PER_PAGE)
  const hasChannel = visit.site.store.alertChannels.ofOrganization(visit.organization.id).length > 0
  const about = `What happened that somebody should know${isEmpty ? '' : `: the last ${countText(ALERTS_READ_MAX)} at most`}`
  return (
    <>
      <PageHead title="Alerts" about={about}>
        {!isEmpty && <CsvLink path={ALERTS_PATH} query={query} />}
      </PageHead>
      <AlertTabs here={ALERTS_PATH} />
      {!hasChannel && <NoChannel mayAdd={visit.may('alert-channel.add')} />}
      {isEmpty ? (
        <Empty title="No alert yet">
          <p class="muted">
            <a href={RULES_PATH}>Rules</a> raise alerts after each scan, and every 30 seconds for senders and keys.
          </p>
        </Empty>
      ) : (
        <>
          <Filters action={ALERTS_PATH}>
            <FilterSelect
              name="rule"
              label="Rule"
              value={rule ?? ''}
              options={[['', 'All'], ...ALERT_RULES.map((each) => [each, wordsOf(each)] as const)]}
            />
            <FilterSelect
              name="severity"
              label="Severity from"
              value={severity ?? ''}
              options={[['', 'All'], ...ALERT_SEVERITIES.map((each) => [each, each] as const)]}
            />
          </Filters>
          <PagedTable
            {...{ visit, id: 'alerts', label: 'Alerts', columns: COLUMNS }}
            rows={{ ...page, rows: alertRows(visit, page.rows) }}
            empty={
              <Empty title="No alert matches">
                <p>
                  <a href={ALERTS_PATH}>Show all alerts</a>
                </p>
              </Empty>
            }
          />
        </>
      )}
    </>
  )
}

function NoChannel({ mayAdd }: { readonly mayAdd: boolean }) {
  return (
    <Empty title="Alerts are sent nowhere yet">
      <p class="muted">
        {mayAdd
          ? 'Add a channel: a webhook, Slack, Teams, mail or a SIEM. Alerts from then on are sent there.'
          : 'An admin of the organization can add a channel: a webhook, Slack, Teams, mail or a SIEM.'}
      </p>
      {mayAdd && (
        <a class="button first" href={CHANNELS_PATH}>
          Add a channel
        </a>
      )}
    </Empty>
  )
}

export const ALERT_ROUTES: readonly Route[] = [
  page(ALERTS_PATH, 'alert.read', (visit) => visit.page('Alerts', ALERTS_PATH, Alerts({ visit }))),
  csvFile(ALERTS_PATH, 'alert.read', COLUMNS, (visit) => alertRows(visit, filtered(visit, ALERTS_MAX).alerts)),
]

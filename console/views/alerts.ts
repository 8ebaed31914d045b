import { type AlertDelivery, deliveriesOf } from '../../engine/admin/alert-rows.ts'
import { pathOf } from '../../engine/alert/completed-message.ts'
import {
  ALERT_RULES,
  ALERT_SEVERITIES,
  type Alert,
  type AlertRule,
  type AlertSeverity,
} from '../../engine/store/alerts.ts'
import { type Paged, paged } from '../design/paged.ts'
import type { Visit } from '../http/visit.ts'

/** Alerts that the page searches, and that it shows at once. */
export const ALERTS_READ_MAX = 1000
const ALERTS_PER_PAGE = 50

export interface AlertRow {
  readonly alert: Alert
  readonly deliveries: readonly AlertDelivery[]
  /** The page about the subject of the alert, if there is one. */
  readonly path: string | undefined
}

export interface AlertsView {
  /** Newest first. */
  readonly rows: Paged<AlertRow>
  /** undefined: all rules. */
  readonly rule: AlertRule | undefined
  readonly severity: AlertSeverity | undefined
  readonly hasChannel: boolean
  /** The organization never had an alert. */
  readonly isEmpty: boolean
}

/** The last alerts, filtered by the query's `rule` and `severity`. */
export function alertsView(visit: Visit): AlertsView {
  const { query } = visit.request
  const { alerts, rule, severity, isEmpty } = filtered(visit, ALERTS_READ_MAX)
  const page = paged(alerts, query, 'page', ALERTS_PER_PAGE)
  return {
    rows: { ...page, rows: alertRows(visit, page.rows) },
    rule,
    severity,
    hasChannel: visit.site.store.alertChannels.ofOrganization(visit.organization.id).length > 0,
    isEmpty,
  }
}

/** At most `countMax` alerts with the query's filters, for a file. */
export function allAlertRows(visit: Visit, countMax: number): AlertRow[] {
  return alertRows(visit, filtered(visit, countMax).alerts)
}

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

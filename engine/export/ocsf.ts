import { isIP } from 'node:net'
import type { ClientFacts, FindingEvent, PlatformFacts, Reporter, Severity } from './finding-event.ts'

/*
 * Open Cybersecurity Schema Framework: a Detection Finding (class 2004, category Findings). Of the
 * other classes, Application Activity describes one request, and Compliance Finding the result of a
 * check; a platform in use and an alert are what detection found in many requests.
 *
 * The attributes exist since version 1.5.0 and are unchanged up to 1.8.0.
 */
const OCSF_VERSION = '1.5.0'
const CATEGORY_FINDINGS = 2
const CLASS_DETECTION_FINDING = 2004
const ACTIVITY_CREATE = 1
const STATUS = { new: 1, inProgress: 2, suppressed: 3 } as const
const ANALYTIC_RULE = 1
const CONFIDENCE = { low: 1, medium: 2, high: 3 } as const
/** Types of observables. */
const OBSERVABLE = { hostname: 1, ipAddress: 2, userName: 4 } as const

const SEVERITY: Readonly<Record<Severity, readonly [id: number, caption: string]>> = {
  informational: [1, 'Informational'],
  low: [2, 'Low'],
  medium: [3, 'Medium'],
  high: [4, 'High'],
  critical: [5, 'Critical'],
}
const RISK_LEVEL: Readonly<Record<Severity, readonly [id: number, caption: string]>> = {
  informational: [0, 'Info'],
  low: [1, 'Low'],
  medium: [2, 'Medium'],
  high: [3, 'High'],
  critical: [4, 'Critical'],
}

/** One line of JSON, without a line end. */
export function ocsfLine(event: FindingEvent, reporter: Reporter): string {
  return JSON.stringify(ocsfFinding(event, reporter))
}

/** The event as an object. Attributes without a value are undefined. */
export function ocsfFinding(event: FindingEvent, reporter: Reporter): Readonly<Record<string, unknown>> {
  const { id, kind, title, message, timeMs, organization, platform, clients = [], details } = event
  const [severityId, severity] = SEVERITY[event.severity]
  const observables = observablesOf(platform, clients)
  return {
    activity_id: ACTIVITY_CREATE,
    activity_name: 'Create',
    category_uid: CATEGORY_FINDINGS,
    category_name: 'Findings',
    class_uid: CLASS_DETECTION_FINDING,
    class_name: 'Detection Finding',
    type_uid: CLASS_DETECTION_FINDING * 100 + ACTIVITY_CREATE,
    type_name: 'Detection Finding: Create',
    time: timeMs,
    severity_id: severityId,
    severity,
    is_alert: event.isAlert,
    message,
    metadata: {
      version: OCSF_VERSION,
      uid: id,
      tenant_uid: organization.id,
      log_name: kind,
      product: { name: reporter.product, vendor_name: reporter.vendor, version: reporter.version },
    },
    finding_info: {
      uid: id,
      title,
      desc: message,
      types: [kind],
      created_time: timeMs,
      first_seen_time: platform?.firstSeenMs,
      last_seen_time: platform?.lastSeenMs,
      src_url: event.url,
      analytic: { name: kind, type_id: ANALYTIC_RULE, type: 'Rule' },
    },
    ...statusOf(platform),
    ...(platform && ratingsOf(platform, event.severity)),
    resources: platform && [resourceOf(platform)],
    evidences: nonEmpty([
      ...clients.map(evidenceOfClient),
      ...(platform?.domains ?? []).map((hostname) => ({ dst_endpoint: { hostname } })),
    ]),
    observables: nonEmpty(observables),
    unmapped: {
      organization: organization.name,
      ...(platform && { decision: platform.decision, clients: platform.clients, matches: platform.matches }),
      ...details,
    },
  }
}

/** A decision is the review of a finding. Other findings are new. */
function statusOf(platform: PlatformFacts | undefined): { status_id: number; status: string } {
  if (platform?.decision === 'approved') return { status_id: STATUS.suppressed, status: 'Suppressed' }
  if (platform?.decision === 'rejected') return { status_id: STATUS.inProgress, status: 'In Progress' }
  return { status_id: STATUS.new, status: 'New' }
}

function ratingsOf({ confidence, risk }: PlatformFacts, severity: Severity): Readonly<Record<string, unknown>> {
  const [riskLevelId, riskLevel] = RISK_LEVEL[severity]
  const level = confidence >= 2 / 3 ? 'high' : confidence >= 1 / 3 ? 'medium' : 'low'
  return {
    confidence_score: Math.round(confidence * 100),
    confidence_id: CONFIDENCE[level],
    confidence: `${level.slice(0, 1).toUpperCase()}${level.slice(1)}`,
    risk_score: risk,
    risk_level_id: riskLevelId,
    risk_level: riskLevel,
  }
}

function resourceOf({ id, name, type, vendor, url }: PlatformFacts): Readonly<Record<string, unknown>> {
  return { uid: id, name, type, data: { vendor, url } }
}

function evidenceOfClient({ address, user }: ClientFacts): Readonly<Record<string, unknown>> {
  return {
    src_endpoint: isIP(address) === 0 ? { name: address } : { ip: address },
    ...(user === '' ? {} : { user: { name: user } }),
  }
}

function observablesOf(platform: PlatformFacts | undefined, clients: readonly ClientFacts[]) {
  const addresses = clients.filter(({ address }) => isIP(address) !== 0)
  const users = clients.filter(({ user }) => user !== '')
  return [
    ...(platform?.domains ?? []).map((value) => observable('evidences.dst_endpoint.hostname', 'hostname', value)),
    ...addresses.map(({ address }) => observable('evidences.src_endpoint.ip', 'ipAddress', address)),
    ...users.map(({ user }) => observable('evidences.user.name', 'userName', user)),
  ]
}

const OBSERVABLE_CAPTION = { hostname: 'Hostname', ipAddress: 'IP Address', userName: 'User Name' } as const

function observable(name: string, type: keyof typeof OBSERVABLE, value: string) {
  return { name, type_id: OBSERVABLE[type], type: OBSERVABLE_CAPTION[type], value }
}

function nonEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list
}

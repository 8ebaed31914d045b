import { type CandidateSignal, candidateOf, KnownSites, scoreOf } from '../../registry/candidate-names.ts'
import type { Catalog } from '../../registry/catalog.ts'
import { canonicalName } from '../../registry/domain-name.ts'
import type { PlatformType } from '../../registry/platform-type.ts'
import { platformId } from '../../registry/schema-parts.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import { type Candidate, clientsOf } from '../store/candidates.ts'
import type { Organization } from '../store/organizations.ts'
import type { RegistryInForce } from '../store/registry-in-force.ts'
import type { Store } from '../store/store.ts'
import { AuditedChanges } from './audited-changes.ts'
import type { ReadRegistryFile } from './own-platforms.ts'

const SEVERAL_CLIENTS = 3
/** What errors and the audit log call the entry of a candidate. */
const FILE_NAME = 'candidate'

/** A candidate as it is shown: with its signals, and their score of 100. */
export interface ShownCandidate extends Omit<Candidate, 'clients'> {
  readonly score: number
  readonly signals: readonly CandidateSignal[]
  /** undefined if the organization keeps no addresses. */
  readonly clients: number | undefined
}

/**
 * Names of no platform that look like AI services, highest score first. Names that a platform has
 * by now are left out.
 */
export function candidatesOf(
  store: Store,
  registry: Pick<RegistryInForce, 'catalogOf'>,
  organizationId: string,
  isDismissed = false,
): ShownCandidate[] {
  const stored = store.candidates
    .ofOrganization(organizationId)
    .filter(({ dismissedAtMs }) => dismissedAtMs > 0 === isDismissed)
  if (stored.length === 0) return []
  const { rules } = registry.catalogOf(organizationId)
  const known = new KnownSites(rules)
  const domains = new Set(rules.filter(({ match }) => match !== 'pattern').map(({ domain }) => domain))
  return stored
    .filter(({ name }) => !isBelow(domains, name))
    .map((candidate) => shown(candidate, known))
    .sort((a, b) => b.score - a.score || b.requests - a.requests || (a.name < b.name ? -1 : 1))
}

/** Whether the name or one above it is among the domains. A page must not compile a matcher. */
function isBelow(domains: ReadonlySet<string>, name: string): boolean {
  for (let at = 0; at >= 0; at = name.indexOf('.', at + 1)) {
    if (domains.has(at === 0 ? name : name.slice(at + 1))) return true
  }
  return false
}

function shown(candidate: Candidate, known: KnownSites): ShownCandidate {
  const { name, withAi, isByDevice } = candidate
  const clients = clientsOf(candidate)
  const signals = [...(candidateOf(name)?.signals ?? []), ...known.signalsOf(name)]
  if (isByDevice) signals.push('device_category')
  if (withAi > 0) signals.push('with_ai')
  if ((clients ?? 0) >= SEVERAL_CLIENTS) signals.push('several_clients')
  return { ...candidate, clients, signals, score: scoreOf(signals) }
}

/** How a candidate becomes a custom platform. */
export interface NewPlatform {
  readonly id: string
  readonly name: string
  readonly type: PlatformType
  /** 0 to 100. */
  readonly risk: number
}

/**
 * The registry file that makes a candidate a custom platform.
 *
 * @throws Fault USAGE, CONFLICT if a platform has the id or the name
 */
export function candidateEntry(
  catalog: Catalog,
  given: string,
  { id, name, type, risk }: NewPlatform,
): ReadRegistryFile {
  const domain = nameOf(given)
  const idFault = platformId.safeParse(id).error?.issues[0]?.message
  if (idFault !== undefined) throw new Fault('USAGE', `the id ${JSON.stringify(id)}: ${idFault}`)
  const same = catalog.platforms.find((platform) => platform.id === id)
  if (same !== undefined) throw new Fault('CONFLICT', `the id ${id} belongs to ${same.name}; choose another id`)
  const owner = catalog.rules.find((rule) => rule.domain === domain)
  if (owner !== undefined) throw new Fault('CONFLICT', `${domain} belongs to ${owner.platform.name}`)
  const entry = {
    id,
    name: name === '' ? domain : name,
    vendor: name === '' ? domain : name,
    platform_type: type,
    url: `https://${domain}`,
    risk: { score: risk, why: 'Added from a candidate; its risk was not assessed' },
    source: ['candidate of this organization'],
    domains: [{ domain, match: 'suffix', role: 'web', specificity: 1, purpose: 'use', evidence: 'listed' } as const],
  }
  return { name: FILE_NAME, changes: { platforms: [entry], disable: [] } }
}

/** Marks candidates that are no AI services. */
export class CandidateChanges extends AuditedChanges {
  /** Hides the candidate. @throws Fault NOT_FOUND, NOT_ALLOWED. */
  dismiss(organization: Organization, name: string): void {
    this.#mark('candidate.dismiss', organization, name, this.clock.nowMs())
  }

  /** Shows a dismissed candidate again. @throws Fault NOT_FOUND, NOT_ALLOWED. */
  restore(organization: Organization, name: string): void {
    this.#mark('candidate.restore', organization, name, 0)
  }

  #mark(
    action: 'candidate.dismiss' | 'candidate.restore',
    { id, name: owner }: Organization,
    given: string,
    dismissedAtMs: number,
  ): void {
    const { candidates } = this.store
    this.audited(action, id, () => {
      const found = candidates.get(id, nameOf(given))
      if (found === undefined) {
        const shows = `posture-admin registry candidates list --org ${JSON.stringify(owner)} shows all`
        throw new Fault('NOT_FOUND', `${JSON.stringify(given)} is not a candidate; ${shows}`)
      }
      candidates.put(id, { ...found, dismissedAtMs })
      return { organizationId: id, subject: found.name, result: undefined }
    })
  }
}

function nameOf(given: string): string {
  const name = canonicalName(given.trim())
  if (name?.includes('.') === true) return name
  throw new Fault('USAGE', `${JSON.stringify(given)} is not a host name`)
}

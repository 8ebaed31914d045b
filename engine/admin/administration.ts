import type { Clock } from '../kernel/process/clock.ts'
import { Fault } from '../kernel/process/error-codes.ts'
import type { Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { AccountLinkChanges } from './account-links.ts'
import { AlertChanges } from './alerts.ts'
import { ApiKeyChanges } from './api-keys.ts'
import { ApprovalChanges } from './approvals.ts'
import { AssessmentChanges } from './assessments.ts'
import { type Actor, AuditedChanges } from './audited-changes.ts'
import { BlockListLinkChanges } from './block-list-links.ts'
import { CandidateChanges } from './candidates.ts'
import { ClientGroupChanges } from './client-groups.ts'
import { ClientNameChanges } from './client-names.ts'
import { ClientReads } from './clients.ts'
import { FrameworkChanges } from './frameworks.ts'
import { ManagerChanges } from './managers.ts'
import { MemberChanges } from './members.ts'
import { OrganizationChanges, RetentionChanges, ScanChanges } from './organizations.ts'
import { OwnPlatformChanges } from './own-platforms.ts'
import { PasskeyChanges } from './passkeys.ts'
import { PersonChanges } from './persons.ts'
import { RecommendationChanges } from './recommendations.ts'
import { RegistryUpdates } from './registry-updates.ts'
import { ReportChanges } from './reports.ts'
import { SavedViewChanges } from './saved-views.ts'
import { SignInChanges } from './sign-in.ts'
import { TokenChanges } from './tokens.ts'

/** The default actor. */
export const OPERATOR: Actor = { kind: 'operator', name: 'operator' }

/** Organizations that an error names. */
const NAMED_MAX = 5

/**
 * All changes that an administrator can make. Each change and its audit log entry are one
 * transaction, visible to the next request in every thread.
 */
export class Administration extends AuditedChanges {
  readonly organizations = new OrganizationChanges(this.store, this.clock, this.actor)
  readonly members = new MemberChanges(this.store, this.clock, this.actor)
  readonly accountLinks = new AccountLinkChanges(this.store, this.clock, this.actor)
  readonly passkeys = new PasskeyChanges(this.store, this.clock, this.actor)
  readonly apiKeys = new ApiKeyChanges(this.store, this.clock, this.actor)
  readonly tokens = new TokenChanges(this.store, this.clock, this.actor)
  readonly blockListLinks = new BlockListLinkChanges(this.store, this.clock, this.actor)
  readonly approvals = new ApprovalChanges(this.store, this.clock, this.actor)
  readonly ownPlatforms = new OwnPlatformChanges(this.store, this.clock, this.actor)
  readonly candidates = new CandidateChanges(this.store, this.clock, this.actor)
  readonly registryUpdates = new RegistryUpdates(this.store, this.clock, this.actor)
  readonly clients = new ClientReads(this.store, this.clock, this.actor)
  readonly clientNames = new ClientNameChanges(this.store, this.clock, this.actor)
  readonly clientGroups = new ClientGroupChanges(this.store, this.clock, this.actor)
  readonly managers = new ManagerChanges(this.store, this.clock, this.actor)
  readonly persons = new PersonChanges(this.store, this.clock, this.actor)
  readonly savedViews = new SavedViewChanges(this.store, this.clock, this.actor)
  readonly scans = new ScanChanges(this.store, this.clock, this.actor)
  readonly assessments = new AssessmentChanges(this.store, this.clock, this.actor)
  readonly frameworks = new FrameworkChanges(this.store, this.clock, this.actor)
  readonly recommendations = new RecommendationChanges(this.store, this.clock, this.actor)
  readonly reports = new ReportChanges(this.store, this.clock, this.actor)
  readonly retention = new RetentionChanges(this.store, this.clock, this.actor)
  readonly signIn = new SignInChanges(this.store, this.clock, this.actor)
  readonly alerts = new AlertChanges(this.store, this.clock, this.actor)

  constructor(store: Store, clock: Clock, actor = OPERATOR) {
    super(store, clock, actor)
  }

  /** Adds an ingested file to the audit log. Ingest itself required a monitoring token. */
  noteIngested(organizationId: string, files: readonly string[], messages: number, matched: number): void {
    const subject = files.join(', ')
    this.audited('ingest.file', organizationId, () => {
      return { organizationId, subject, details: { messages, matched }, result: undefined }
    })
  }

  /**
   * @param nameOrId if undefined, the only organization that there is.
   * @throws Fault NOT_FOUND; USAGE where there are several to choose from.
   */
  organization(nameOrId?: string): Organization {
    if (nameOrId === undefined) return this.#only()
    const organization = this.store.organizations.find(nameOrId)
    if (organization === undefined) {
      throw new Fault(
        'NOT_FOUND',
        `no organization ${JSON.stringify(nameOrId)}; posture-admin organization list shows all`,
      )
    }
    return organization
  }

  #only(): Organization {
    const all = this.store.organizations.all()
    const [first, ...others] = all
    if (first === undefined) {
      throw new Fault('NOT_FOUND', 'there is no organization yet; create one with posture-admin organization create')
    }
    if (others.length === 0) return first
    const named = all
      .map(({ name }) => name)
      .sort()
      .slice(0, NAMED_MAX)
    const more = all.length > named.length ? ', ...' : ''
    throw new Fault(
      'USAGE',
      `--org or POSTURE_ORG is required, because there are ${all.length} organizations: ${named.join(', ')}${more}`,
    )
  }
}

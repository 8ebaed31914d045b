import type { Clock } from '../process/clock.ts'
import { Fault } from '../process/error-codes.ts'
import type { Organization } from '../store/organizations.ts'
import type { Store } from '../store/store.ts'
import { AccountLinkChanges } from './account-links.ts'
import { AlertChanges } from './alerts.ts'
import { ApiKeyChanges } from './api-keys.ts'
import { ApprovalChanges } from './approvals.ts'
import { AssessmentChanges } from './assessments.ts'
import { BlockListLinkChanges } from './block-list-links.ts'
import { CandidateChanges } from './candidates.ts'
import { type Actor, Changes } from './changes.ts'
import { ClientNameChanges } from './client-names.ts'
import { ClientReads } from './clients.ts'
import { FrameworkChanges } from './frameworks.ts'
import { MemberChanges } from './members.ts'
import { OrganizationChanges } from './organizations.ts'
import { OwnPlatformChanges } from './own-platforms.ts'
import { PasskeyChanges } from './passkeys.ts'
import { RecommendationChanges } from './recommendations.ts'
import { RegistryUpdates } from './registry-updates.ts'
import { ReportChanges } from './reports.ts'
import { RetentionChanges } from './retention.ts'
import { ScanChanges } from './scans.ts'
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
export class Administration {
  readonly organizations: OrganizationChanges
  readonly members: MemberChanges
  readonly accountLinks: AccountLinkChanges
  readonly passkeys: PasskeyChanges
  readonly apiKeys: ApiKeyChanges
  readonly tokens: TokenChanges
  readonly blockListLinks: BlockListLinkChanges
  readonly approvals: ApprovalChanges
  readonly ownPlatforms: OwnPlatformChanges
  readonly candidates: CandidateChanges
  readonly registryUpdates: RegistryUpdates
  readonly clients: ClientReads
  readonly clientNames: ClientNameChanges
  readonly scans: ScanChanges
  readonly assessments: AssessmentChanges
  readonly frameworks: FrameworkChanges
  readonly recommendations: RecommendationChanges
  readonly reports: ReportChanges
  readonly retention: RetentionChanges
  readonly signIn: SignInChanges
  readonly alerts: AlertChanges
  readonly #store: Store
  readonly #changes: Changes

  constructor(store: Store, clock: Clock, actor: Actor = OPERATOR) {
    const changes = new Changes(store, clock, actor)
    this.#store = store
    this.#changes = changes
    this.organizations = new OrganizationChanges(changes)
    this.members = new MemberChanges(changes)
    this.accountLinks = new AccountLinkChanges(changes)
    this.passkeys = new PasskeyChanges(changes)
    this.apiKeys = new ApiKeyChanges(changes)
    this.tokens = new TokenChanges(changes)
    this.blockListLinks = new BlockListLinkChanges(changes)
    this.approvals = new ApprovalChanges(changes)
    this.ownPlatforms = new OwnPlatformChanges(changes)
    this.candidates = new CandidateChanges(changes)
    this.registryUpdates = new RegistryUpdates(changes)
    this.clients = new ClientReads(changes)
    this.clientNames = new ClientNameChanges(changes)
    this.scans = new ScanChanges(changes)
    this.assessments = new AssessmentChanges(changes)
    this.frameworks = new FrameworkChanges(changes)
    this.recommendations = new RecommendationChanges(changes)
    this.reports = new ReportChanges(changes)
    this.retention = new RetentionChanges(changes)
    this.signIn = new SignInChanges(changes)
    this.alerts = new AlertChanges(changes)
  }

  /** Adds an ingested file to the audit log. Ingest itself required a monitoring token. */
  noteIngested(organizationId: string, files: readonly string[], messages: number, matched: number): void {
    const subject = files.join(', ')
    this.#changes.make('ingest.file', organizationId, () => {
      return { organizationId, subject, details: { messages, matched }, result: undefined }
    })
  }

  /**
   * @param nameOrId if undefined, the only organization that there is.
   * @throws Fault NOT_FOUND; USAGE where there are several to choose from.
   */
  organization(nameOrId?: string): Organization {
    if (nameOrId === undefined) return this.#only()
    const organization = this.#store.organizations.find(nameOrId)
    if (organization === undefined) {
      throw new Fault(
        'NOT_FOUND',
        `no organization ${JSON.stringify(nameOrId)}; posture-admin organization list shows all`,
      )
    }
    return organization
  }

  #only(): Organization {
    const all = this.#store.organizations.all()
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

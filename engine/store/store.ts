import { join } from 'node:path'
import { Environment } from '../kernel/lmdb/environment.ts'
import { AccountLinks } from './account-links.ts'
import { AlertChannels } from './alert-channels.ts'
import { Alerts } from './alerts.ts'
import { ApiVersions } from './api-versions.ts'
import { Assessments } from './assessments.ts'
import { AuditLog } from './audit-log.ts'
import { EventBuffer } from './buffer.ts'
import { Candidates } from './candidates.ts'
import { ClientDays } from './client-days.ts'
import { ClientErasures } from './client-erasures.ts'
import { ClientGroups } from './client-groups.ts'
import { ClientNames } from './client-names.ts'
import { ClientSummaries } from './client-summaries.ts'
import { CoverageStore } from './coverage.ts'
import { DailyUse } from './daily-use.ts'
import { Decisions } from './decisions.ts'
import { EvidenceStore } from './evidence.ts'
import { FederatedIdentities } from './federated-identities.ts'
import { History } from './history.ts'
import { IdentityProviders } from './identity-providers.ts'
import { KeyUses } from './key-uses.ts'
import { LogPositions } from './log-positions.ts'
import { Members } from './members.ts'
import { migrate, SCHEMA_VERSION } from './migrate.ts'
import { Nodes } from './nodes.ts'
import { Organizations } from './organizations.ts'
import { OwnFrameworks } from './own-frameworks.ts'
import { OwnPlatforms } from './own-platforms.ts'
import { Passkeys } from './passkeys.ts'
import { Published } from './published.ts'
import { ReadLines } from './read-lines.ts'
import { Recommendations } from './recommendations.ts'
import { RegistryReleases } from './registry-releases.ts'
import { Removals } from './removals.ts'
import { RemovedMembers } from './removed-members.ts'
import { ReportSchedules } from './report-schedules.ts'
import { SavedViews } from './saved-views.ts'
import { ScanStates } from './scan-states.ts'
import { Scans } from './scans.ts'
import type { Secrets } from './secrets.ts'
import {
  type ApiKey,
  apiKeysOf,
  type BlockListLink,
  blockListLinksOf,
  type MonitoringToken,
  monitoringTokensOf,
} from './secrets.ts'
import { SeenEvents } from './seen-events.ts'
import { Sessions } from './sessions.ts'
import { Sources } from './sources.ts'
import { TokenBindings } from './token-bindings.ts'
import { UnmatchedEvents } from './unmatched-events.ts'
import { Users } from './users.ts'

/** For transactions in progress when free space is checked, and for the service's log. */
const FREE_BYTES_MIN = 64 * 1024 * 1024
/**
 * The largest transaction allowed on a nearly full disk is a group of scans: 4,096 records of
 * evidence.
 */
const SHRINK_BYTES_MIN = 24 * 1024 * 1024

/** The service's store: one LMDB environment with its record families. */
export class Store {
  /** The directory with the store's folder, key files and custom platforms. */
  readonly dataDirectory: string
  readonly environment: Environment
  readonly apiVersions: ApiVersions
  readonly organizations: Organizations
  readonly ownPlatforms: OwnPlatforms
  readonly registryReleases: RegistryReleases
  readonly removals: Removals
  readonly members: Members
  readonly removedMembers: RemovedMembers
  readonly users: Users
  readonly sessions: Sessions
  readonly passkeys: Passkeys
  readonly accountLinks: AccountLinks
  readonly identityProviders: IdentityProviders
  readonly federatedIdentities: FederatedIdentities
  readonly auditLog: AuditLog
  readonly apiKeys: Secrets<ApiKey>
  readonly keyUses: KeyUses
  readonly monitoringTokens: Secrets<MonitoringToken>
  readonly tokenBindings: TokenBindings
  readonly blockListLinks: Secrets<BlockListLink>
  readonly sources: Sources
  readonly candidates: Candidates
  readonly readLines: ReadLines
  readonly buffer: EventBuffer
  readonly logPositions: LogPositions
  readonly nodes: Nodes
  readonly unmatched: UnmatchedEvents
  readonly seenEvents: SeenEvents
  readonly evidence: EvidenceStore
  readonly clientDays: ClientDays
  readonly clientSummaries: ClientSummaries
  readonly clientErasures: ClientErasures
  readonly clientNames: ClientNames
  readonly clientGroups: ClientGroups
  readonly history: History
  readonly dailyUse: DailyUse
  readonly decisions: Decisions
  readonly scans: Scans
  readonly scanStates: ScanStates
  readonly assessments: Assessments
  readonly ownFrameworks: OwnFrameworks
  readonly recommendations: Recommendations
  readonly published: Published
  readonly coverage: CoverageStore
  readonly alerts: Alerts
  readonly alertChannels: AlertChannels
  readonly reportSchedules: ReportSchedules
  readonly savedViews: SavedViews

  /**
   * Opens the store in `dataDirectory`/store. Creates it if missing, unless `mustExist`.
   *
   * @throws Fault STORE_UNWRITABLE, STORE_VERSION, STORE_DAMAGED; NOT_FOUND if it must exist and
   *   does not
   */
  constructor(dataDirectory: string, options: { readonly mustExist?: boolean } = {}) {
    this.dataDirectory = dataDirectory
    this.environment = new Environment(join(dataDirectory, 'store'), {
      setting: '--data-dir',
      schemaVersion: SCHEMA_VERSION,
      freeBytesMin: FREE_BYTES_MIN,
      shrinkBytesMin: SHRINK_BYTES_MIN,
      migrate: 'by the caller',
      replicable: true,
      ...options,
    })
    this.apiVersions = new ApiVersions(this.environment)
    this.organizations = new Organizations(this.environment, this.apiVersions)
    this.ownPlatforms = new OwnPlatforms(this.environment)
    this.registryReleases = new RegistryReleases(this.environment)
    this.removals = new Removals(this.environment)
    this.members = new Members(this.environment)
    this.removedMembers = new RemovedMembers(this.environment)
    this.users = new Users(this.environment)
    this.sessions = new Sessions(this.environment)
    this.passkeys = new Passkeys(this.environment)
    this.accountLinks = new AccountLinks(this.environment)
    this.identityProviders = new IdentityProviders(this.environment)
    this.federatedIdentities = new FederatedIdentities(this.environment)
    this.auditLog = new AuditLog(this.environment)
    this.apiKeys = apiKeysOf(this.environment, this.apiVersions)
    this.keyUses = new KeyUses(this.environment)
    this.monitoringTokens = monitoringTokensOf(this.environment)
    this.tokenBindings = new TokenBindings(this.environment)
    this.blockListLinks = blockListLinksOf(this.environment)
    this.sources = new Sources(this.environment)
    this.candidates = new Candidates(this.environment)
    this.readLines = new ReadLines(this.environment)
    this.buffer = new EventBuffer(this.environment)
    this.logPositions = new LogPositions(this.environment)
    this.nodes = new Nodes(this.environment)
    this.unmatched = new UnmatchedEvents(this.environment)
    this.seenEvents = new SeenEvents(this.environment)
    this.evidence = new EvidenceStore(this.environment)
    this.clientDays = new ClientDays(this.environment)
    this.clientSummaries = new ClientSummaries(this.environment)
    this.clientErasures = new ClientErasures(this.environment)
    this.clientNames = new ClientNames(this.environment)
    this.clientGroups = new ClientGroups(this.environment)
    this.history = new History(this.environment)
    this.dailyUse = new DailyUse(this.environment)
    this.decisions = new Decisions(this.environment)
    this.scans = new Scans(this.environment)
    this.scanStates = new ScanStates(this.environment)
    this.assessments = new Assessments(this.environment)
    this.ownFrameworks = new OwnFrameworks(this.environment)
    this.recommendations = new Recommendations(this.environment)
    this.published = new Published(this.environment, this.apiVersions)
    this.coverage = new CoverageStore(this.environment)
    this.alerts = new Alerts(this.environment)
    this.alertChannels = new AlertChannels(this.environment)
    this.reportSchedules = new ReportSchedules(this.environment)
    this.savedViews = new SavedViews(this.environment)
    migrate(this.environment)
  }

  close(): Promise<void> {
    return this.environment.close()
  }
}

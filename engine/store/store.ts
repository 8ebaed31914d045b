import { join } from 'node:path'
import { Environment } from '../kernel/lmdb/environment.ts'
import { AlertChannels } from './alert-channels.ts'
import { Alerts } from './alerts.ts'
import { ApiVersions } from './api-versions.ts'
import { Assessments } from './assessments.ts'
import { AuditLog } from './audit-log.ts'
import { Candidates } from './candidates.ts'
import { ClientDays } from './client-days.ts'
import { ClientErasures } from './client-erasures.ts'
import { ClientGroups } from './client-groups.ts'
import { ClientNames } from './client-names.ts'
import { ClientSummaries } from './client-summaries.ts'
import { CoverageStore } from './coverage.ts'
import { DailyUse } from './daily-use.ts'
import { Decisions } from './decisions.ts'
import { EventBuffer, UnmatchedEvents } from './event-queues.ts'
import { EvidenceStore } from './evidence.ts'
import { History } from './history.ts'
import { LogPositions } from './log-positions.ts'
import { FederatedIdentities, IdentityProviders, Members, RemovedMembers } from './members.ts'
import { migrate, SCHEMA_VERSION } from './migrate.ts'
import { Nodes } from './nodes.ts'
import { Organizations } from './organizations.ts'
import { OwnFrameworks } from './own-frameworks.ts'
import { OwnPlatforms } from './own-platforms.ts'
import { Published } from './published.ts'
import { ReadLines } from './read-lines.ts'
import { Recommendations } from './recommendations.ts'
import { RegistryReleases } from './registry-releases.ts'
import { Removals } from './removals.ts'
import { ReportSchedules } from './report-schedules.ts'
import { SavedViews } from './saved-views.ts'
import { ScanStates } from './scan-states.ts'
import { Scans } from './scans.ts'
import { apiKeysOf, blockListLinksOf, KeyUses, monitoringTokensOf, TokenBindings } from './secrets.ts'
import { SeenEvents } from './seen-events.ts'
import { Sources } from './sources.ts'
import { AccountLinks, Passkeys, Sessions, Users } from './users.ts'

/** For transactions in progress when free space is checked, and for the service's log. */
const FREE_BYTES_MIN = 64 * 1024 * 1024
/**
 * The largest transaction allowed on a nearly full disk is a group of scans: 4,096 records of
 * evidence.
 */
const SHRINK_BYTES_MIN = 24 * 1024 * 1024

/** The environment of the store, in which its families are opened. */
class StoreEnvironment {
  /** The directory with the store's folder, key files and custom platforms. */
  readonly dataDirectory: string
  readonly environment: Environment

  constructor(dataDirectory: string, options: { readonly mustExist?: boolean }) {
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
  }
}

/**
 * The service's store: one LMDB environment with its record families. Their methods that change
 * records require a write transaction of the caller, unless they say otherwise.
 */
export class Store extends StoreEnvironment {
  readonly apiVersions = new ApiVersions(this.environment)
  readonly organizations = new Organizations(this.environment, this.apiVersions)
  readonly ownPlatforms = new OwnPlatforms(this.environment)
  readonly registryReleases = new RegistryReleases(this.environment)
  readonly removals = new Removals(this.environment)
  readonly members = new Members(this.environment)
  readonly removedMembers = new RemovedMembers(this.environment)
  readonly users = new Users(this.environment)
  readonly sessions = new Sessions(this.environment)
  readonly passkeys = new Passkeys(this.environment)
  readonly accountLinks = new AccountLinks(this.environment)
  readonly identityProviders = new IdentityProviders(this.environment)
  readonly federatedIdentities = new FederatedIdentities(this.environment)
  readonly auditLog = new AuditLog(this.environment)
  readonly apiKeys = apiKeysOf(this.environment, this.apiVersions)
  readonly keyUses = new KeyUses(this.environment)
  readonly monitoringTokens = monitoringTokensOf(this.environment)
  readonly tokenBindings = new TokenBindings(this.environment)
  readonly blockListLinks = blockListLinksOf(this.environment)
  readonly sources = new Sources(this.environment)
  readonly candidates = new Candidates(this.environment)
  readonly readLines = new ReadLines(this.environment)
  readonly buffer = new EventBuffer(this.environment)
  readonly logPositions = new LogPositions(this.environment)
  readonly nodes = new Nodes(this.environment)
  readonly unmatched = new UnmatchedEvents(this.environment)
  readonly seenEvents = new SeenEvents(this.environment)
  readonly evidence = new EvidenceStore(this.environment)
  readonly clientDays = new ClientDays(this.environment)
  readonly clientSummaries = new ClientSummaries(this.environment)
  readonly clientErasures = new ClientErasures(this.environment)
  readonly clientNames = new ClientNames(this.environment)
  readonly clientGroups = new ClientGroups(this.environment)
  readonly history = new History(this.environment)
  readonly dailyUse = new DailyUse(this.environment)
  readonly decisions = new Decisions(this.environment)
  readonly scans = new Scans(this.environment)
  readonly scanStates = new ScanStates(this.environment)
  readonly assessments = new Assessments(this.environment)
  readonly ownFrameworks = new OwnFrameworks(this.environment)
  readonly recommendations = new Recommendations(this.environment)
  readonly published = new Published(this.environment, this.apiVersions)
  readonly coverage = new CoverageStore(this.environment)
  readonly alerts = new Alerts(this.environment)
  readonly alertChannels = new AlertChannels(this.environment)
  readonly reportSchedules = new ReportSchedules(this.environment)
  readonly savedViews = new SavedViews(this.environment)

  /**
   * Opens the store in `dataDirectory`/store. Creates it if missing, unless `mustExist`.
   *
   * @throws Fault STORE_UNWRITABLE, STORE_VERSION, STORE_DAMAGED; NOT_FOUND if it must exist and
   *   does not
   */
  constructor(dataDirectory: string, options: { readonly mustExist?: boolean } = {}) {
    super(dataDirectory, options)
    migrate(this.environment)
  }

  close(): Promise<void> {
    return this.environment.close()
  }
}
